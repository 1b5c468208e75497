//! What is said of violations at the end of a run: the most frequent ones, and what no line was about.

use super::{Key, Line, Violations, act};
use crate::text::process_name;

/// How many lines the sum at the end has.
const MOST_SUMS: usize = 5;
/// How many processes, or calls, a line of the sum names.
const MOST_NAMES: usize = 3;

impl Violations {
    /// The lines of the sum: the most frequent violations first, and one line for the others.
    pub(super) fn sums(&self) -> Vec<String> {
        let said = self.lines.iter().filter(|line| line.is_said).map(|line| (self.times(line), line));
        let mut repeated: Vec<(u64, &Line)> = said.filter(|(count, _)| *count > 1).collect();
        // Stable: equals stay in the order in which they happened.
        repeated.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let (first, others) = repeated.split_at(repeated.len().min(MOST_SUMS));
        let mut lines: Vec<String> =
            first.iter().filter_map(|(count, line)| self.sum(*count, line)).collect();
        if !others.is_empty() {
            let times: u64 = others.iter().map(|(count, _)| count).sum();
            lines.push(format!("and {} more, {times} times in all", others.len()));
        }
        lines.extend(self.unsaid());
        lines
    }

    /// The line about what no line was about: how much of which calls, the most frequent first.
    fn unsaid(&self) -> Option<String> {
        let mut calls = self.unremembered.clone();
        for line in self.lines.iter().filter(|line| !line.is_said) {
            let (key, _) = line.members.first().and_then(|place| self.order.get(*place))?;
            *calls.entry(key.0.call.clone()).or_default() += self.times(line);
        }
        let mut calls: Vec<(String, u64)> = calls.into_iter().collect();
        calls.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let times: u64 = calls.iter().map(|(_, count)| count).sum();
        let names = listed(calls.iter().map(|(call, _)| call.clone()).collect());
        (times > 0).then(|| {
            format!("and {times} more violations with other arguments, which are not listed, of {names}")
        })
    }

    /// How often what shares a line happened.
    fn times(&self, line: &Line) -> u64 {
        line.members.iter().filter_map(|place| self.order.get(*place)).map(|(key, _)| self.count(key)).sum()
    }

    /// How often it was, in which processes.
    fn sum(&self, count: u64, line: &Line) -> Option<String> {
        let keys: Vec<&Key> =
            line.members.iter().filter_map(|place| Some(&*self.order.get(*place)?.0)).collect();
        let first = &keys.first()?.0;
        let mut names: Vec<&[u8]> = Vec::new();
        for (_, name) in &keys {
            if !names.contains(&&name[..]) {
                names.push(name);
            }
        }
        let named = listed(names.iter().map(|name| process_name(name)).collect());
        let is_one = keys.iter().all(|(violation, _)| violation.path == first.path);
        let times = if is_one { format!("{count} times") } else { format!("and {} more", count - 1) };
        Some(format!("{} {times} in {named}", act(first)))
    }
}

/// The first names of a list, and how many more there are.
fn listed(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    names.extend((more > 0).then(|| format!("{more} more")));
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::caller::Caller;
    use crate::explain::hint::Reason;
    use crate::supervise::violation::{Confidence, Fate, Kind, MOST, Violation};

    fn all(calls: &[(&str, u64)]) -> Violations {
        let mut violations = Violations::new(false);
        let caller = Caller { name: b"tool".to_vec(), process: 7, inside: (7, 7) };
        for (call, count) in calls {
            for _ in 0..*count {
                let violation = Violation {
                    fate: Fate::Blocked,
                    kind: Kind::Syscall,
                    confidence: Confidence::Observed,
                    call: call.to_string(),
                    arguments: "0".to_string(),
                    path: None,
                    address: None,
                    reason: Reason::default(),
                };
                violations.tell(violation, &caller);
            }
        }
        violations
    }

    #[test]
    fn what_happened_once_is_not_summed_up() {
        assert!(all(&[]).sums().is_empty());
        assert!(all(&[("a", 1), ("b", 1)]).sums().is_empty());
    }

    #[test]
    fn the_most_frequent_come_first_and_the_others_together() {
        let violations =
            all(&[("a", 2), ("b", 9), ("c", 1), ("d", 3), ("e", 2), ("f", 2), ("g", 2), ("h", 4)]);
        let sums = violations.sums();
        let expected = [
            "blocked b(0) 9 times in tool",
            "blocked h(0) 4 times in tool",
            "blocked d(0) 3 times in tool",
            "blocked a(0) 2 times in tool",
            "blocked e(0) 2 times in tool",
            "and 2 more, 4 times in all",
        ];
        assert_eq!(sums, expected);
        assert_eq!(violations.distinct(), 8);
    }

    #[test]
    fn memory_and_lines_are_bounded_and_the_count_is_exact() {
        let names: Vec<String> = (0..2000).map(|number| format!("c{number}")).collect();
        let calls: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 3)).collect();
        let violations = all(&calls);
        let sums = violations.sums();
        assert_eq!(violations.distinct(), MOST);
        assert_eq!(sums.len(), MOST_SUMS + 2);
        assert_eq!((violations.records().count(), violations.unlisted()), (MOST, (2000 - MOST as u64) * 3));
        assert!(violations.records().all(|record| record.count == 3 && record.process == 7));
        assert_eq!(sums[MOST_SUMS], "and 195 more, 585 times in all");
        assert_eq!(
            sums[MOST_SUMS + 1],
            "and 5400 more violations with other arguments, which are not listed, of c1000, c1001, c1002 and 1797 more"
        );
    }

    #[test]
    fn no_number_of_calls_hides_another_one() {
        let mut violations = all(&[]);
        let caller = Caller { name: b"tool".to_vec(), process: 7, inside: (7, 7) };
        let mut tell = |call: &str, arguments: String| {
            let all = all(&[(call, 1)]);
            let (key, _) = &all.order[0];
            violations.tell(Violation { arguments, ..key.0.clone() }, &caller);
        };
        (0..2000).for_each(|number| tell("socket", number.to_string()));
        tell("connect", "here".to_string());
        tell("connect", "there".to_string());
        assert!(violations.records().any(|record| record.violation.arguments == "here"));
        assert!(violations.lines.last().unwrap().is_said);
        let [last] = &violations.sums()[..] else { panic!("{:?}", violations.sums()) };
        assert!(last.ends_with(
            "and 1801 more violations with other arguments, which are not listed, of socket and connect"
        ));
    }
}
