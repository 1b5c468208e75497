use super::*;
use crate::explain::hint::Explainer;
use crate::plan::OnViolation;
use crate::profile::NetworkMode;
use crate::supervise::violation::Violations;
use crate::sys::privilege;
use sbx_policy::bpf;
use sbx_policy::errno::EPERM;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc;

/// A handler that says what it is asked. Adding a real one takes no more than this: what it copies, and
/// what it does.
struct MadeUp {
    name: &'static str,
    step: fn() -> Step,
    asked: Rc<RefCell<Vec<String>>>,
}

/// What the made-up handler copies.
struct Asker(Vec<u8>);

impl Handler for MadeUp {
    type Copy = Asker;

    fn look(&self, waiting: &Waiting<'_>) -> Option<Asker> {
        self.asked.borrow_mut().push(format!("{} looks", self.name));
        Some(Asker(waiting.caller().name.clone()))
    }

    fn act(&mut self, asker: Asker, call: &NotifiedCall, _: &mut Judge) -> Result<Step, SyscallError> {
        let (name, asker) = (self.name, String::from_utf8_lossy(&asker.0).into_owned());
        self.asked.borrow_mut().push(format!("{name} acts on {} of {asker}", call.name));
        Ok((self.step)())
    }
}

#[derive(Default)]
struct Asked(Rc<RefCell<Vec<String>>>);

impl Asked {
    fn handler(&self, name: &'static str, step: fn() -> Step) -> MadeUp {
        MadeUp { name, step, asked: self.0.clone() }
    }
}

const GETPPID: Answers = Answers::These(&[&["getppid"]]);

fn dispatcher(table: Table) -> Dispatcher {
    let judge = Judge {
        on_violation: OnViolation::Errno(EPERM),
        program: None,
        network: NetworkMode::None,
        explainer: Explainer::of_profile("minimal", NetworkMode::None, Path::new("/")),
        violations: Violations::new(false),
        unanswered: BTreeSet::new(),
    };
    Dispatcher::new(judge, table)
}

/// What getppid(2) returns to a thread whose calls this dispatcher answers.
fn parent_by(dispatcher: &mut Dispatcher) -> u32 {
    let (thread, listener) = notified_thread();
    assert_eq!(dispatcher.next(listener.as_fd()).unwrap(), Flow::GoOn);
    thread.join().unwrap()
}

/// A thread whose getppid(2) is notified, and where.
fn notified_thread() -> (std::thread::JoinHandle<u32>, OwnedFd) {
    let getppid = Call::named(b"getppid").unwrap().number(Arch::HOST).unwrap();
    let program = [
        bpf::stmt(bpf::LD, bpf::DATA_NR),
        bpf::jump(bpf::JEQ, getppid, 0, 1),
        bpf::stmt(bpf::RET, bpf::RET_USER_NOTIF),
        bpf::stmt(bpf::RET, bpf::RET_ALLOW),
    ];
    let (tell, listener) = mpsc::channel();
    let call = move || {
        privilege::no_new_privs().unwrap();
        tell.send(seccomp::install_with_listener(&program).unwrap()).unwrap();
        parent_id()
    };
    let thread = std::thread::Builder::new().name("asker".to_string()).spawn(call).unwrap();
    (thread, seccomp::own_listener(listener.recv().unwrap()))
}

fn kinds(table: &mut Table, number: u32) -> Vec<Notified> {
    table.of(number).map(|(kind, _)| *kind).collect()
}

#[test]
fn each_call_has_its_handlers_at_its_number_in_the_stated_order() {
    let (asked, mut table) = (Asked::default(), Table::default());
    for kind in Notified::ORDER.into_iter().rev() {
        table.register(kind, asked.handler("", || Step::Next));
    }
    let answers = |kind: &Notified, name: &str| match kind.answers() {
        Answers::Every => true,
        Answers::These(lists) => lists.iter().any(|list| list.contains(&name)),
    };
    for call in Call::all() {
        let Some(number) = call.number(Arch::HOST) else { continue };
        let expected: Vec<_> =
            Notified::ORDER.into_iter().filter(|kind| answers(kind, call.name())).collect();
        assert_eq!(kinds(&mut table, number), expected, "{}", call.name());
        assert_eq!(kinds(&mut table, number | X32_BIT), expected, "{}", call.name());
    }
    let rename = Call::named(b"renameat").unwrap().number(Arch::HOST).unwrap();
    let asked_of_renames = [Notified::GitConfig, Notified::StaticPrograms, Notified::RefusedPaths];
    assert_eq!(kinds(&mut table, rename), asked_of_renames);
    assert_eq!(kinds(&mut table, u32::MAX), [Notified::RefusedPaths]);
    let lists = Notified::ORDER.into_iter().filter_map(|kind| match kind.answers() {
        Answers::These(lists) => Some(lists),
        Answers::Every => None,
    });
    for name in lists.flatten().copied().flatten() {
        assert!(Call::named(name.as_bytes()).is_some(), "no call is named {name}");
    }
}

#[test]
fn a_call_goes_from_handler_to_handler_until_one_answers() {
    let (asked, mut table) = (Asked::default(), Table::default());
    table.add(Notified::Attributes, GETPPID, asked.handler("third", || Step::Settled));
    table.add(Notified::Connect, GETPPID, asked.handler("second", || Step::Answer(Answer::Done)));
    table.add(Notified::GitConfig, GETPPID, asked.handler("first", || Step::Next));
    table.add(Notified::Tasks, Answers::These(&[&["getpid"]]), asked.handler("none", || Step::EndRun));
    // The kernel would never return 0 here.
    assert_eq!(parent_by(&mut dispatcher(table)), 0);
    // The thread has another name.
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let acts = |which: &str| format!("{which} acts on getppid of {}", name.trim_end());
    let expected = ["first looks".to_string(), acts("first"), "second looks".to_string(), acts("second")];
    assert_eq!(*asked.0.borrow(), expected);
}

#[test]
fn a_call_that_no_handler_answers_gets_the_plain_answer() {
    let (asked, mut table) = (Asked::default(), Table::default());
    table.add(Notified::GitConfig, GETPPID, asked.handler("first", || Step::Next));
    let mut dispatcher = dispatcher(table);
    // -1: the error is in errno.
    assert_eq!(parent_by(&mut dispatcher), u32::MAX);
    assert_eq!(dispatcher.judge.violations.distinct(), 1);
}

#[test]
fn what_was_copied_of_a_caller_that_is_gone_is_not_acted_on() {
    let (thread, listener) = notified_thread();
    let (asked, mut table) = (Asked::default(), Table::default());
    table.add(Notified::GitConfig, GETPPID, asked.handler("first", || Step::EndRun));
    let mut dispatcher = dispatcher(table);
    let notification = seccomp::receive(listener.as_fd()).unwrap().unwrap();
    let gone = Notification { id: notification.id.wrapping_add(1000), ..notification };
    assert_eq!(dispatcher.dispatch(listener.as_fd(), gone).unwrap(), Flow::GoOn);
    assert_eq!(*asked.0.borrow(), ["first looks"]);
    // Nor is anything reported.
    let mut without = self::dispatcher(Table::default());
    assert_eq!(without.dispatch(listener.as_fd(), gone).unwrap(), Flow::GoOn);
    assert_eq!(without.judge.violations.distinct(), 0);
    assert_eq!(dispatcher.dispatch(listener.as_fd(), notification).unwrap(), Flow::EndRun);
    // It waits until somebody answers.
    seccomp::answer(listener.as_fd(), notification.id, Answer::Done).unwrap();
    assert_eq!(thread.join().unwrap(), 0);
}
