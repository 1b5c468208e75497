//! Connections by the name of a host, at which an echo server listens. The name has to lead to another machine: no run
//! reaches its own one by a name.

use std::ffi::OsString;
use std::io;
use std::net::ToSocketAddrs;
use std::time::Instant;

use crate::contestants::{self, Contestant};
use crate::network::child::{connect, echo};
use crate::options::Options;
use crate::report::{Column, Outcome, Report, Row};
use crate::run::Subject;
use crate::scratch::Scratch;
use crate::stats::{self, Sorted};
use crate::{Result, race, report, sys};

/// The hidden command under which a copy of this program does its work inside.
pub(crate) const CHILD: &str = "network-by-name";

const COLUMNS: [Column; 4] = [
    Column { key: "lookup_us", heading: "look-up µs", digits: 0 },
    Column { key: "lookup_over_us", heading: "over direct", digits: 0 },
    Column { key: "connect_us", heading: "connect µs", digits: 0 },
    Column { key: "connect_over_us", heading: "over direct", digits: 0 },
];

/// Figures that the program inside prints.
const MEASURED: usize = COLUMNS.len() / 2;

struct Entry {
    contestant: Contestant,
    state: std::result::Result<Subject, Outcome>,
    samples: [Vec<f64>; MEASURED],
}

/// Prints the median times, in microseconds, of a look-up, and from a connect until the first byte comes back.
pub(crate) fn child(place: &str, number: usize) -> Result<()> {
    println!("{} {}", contestants::FILTERS, contestants::filters_here()?);
    let measured = || -> io::Result<[Vec<f64>; MEASURED]> {
        let mut times: [Vec<f64>; MEASURED] = Default::default();
        for _ in 0..number {
            let before = Instant::now();
            let address = place.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
            let between = Instant::now();
            echo(&mut connect(address)?)?;
            times[0].push((between - before).as_secs_f64() * 1e6);
            times[1].push(between.elapsed().as_secs_f64() * 1e6);
        }
        Ok(times)
    };
    let times = measured().map_err(|e| format!("cannot talk to {place}: {e}"))?;
    let [lookup, connect] = times.map(|all| Sorted::new(all).median());
    println!("{lookup} {connect}");
    Ok(())
}

/// Runs the race.
pub(crate) fn measure(options: &Options, place: &str) -> Result<Report> {
    let sbx = contestants::find_sbx(options.sbx.as_deref())?;
    sys::catch_alarm()?;
    let scratch = Scratch::enter()?;
    let (copy, env) = (scratch.copy_of_self()?, contestants::environment(&scratch));
    let seed = options.seed.unwrap_or_else(stats::fresh_seed);
    let size = if options.small { "small" } else { "full" };
    let command: [OsString; 4] = [copy.into(), CHILD.into(), place.into(), size.into()];
    let admit = |contestant: Contestant| {
        let state = contestant.tried(&env).and_then(|_| contestant.running(&command, &env));
        Entry { contestant, state, samples: Default::default() }
    };
    let by_name = contestants::sbx("sbx", &sbx, &format!("--connect {place}/tcp"));
    let mut entries = vec![
        admit(contestants::bare().named("direct")),
        admit(by_name.named("`sbx run --connect NAME:PORT --`")),
    ];
    race::interleave(&mut entries, options, seed, Entry::run_once);
    let rows = entries.iter().map(|entry| row(entry, &entries)).collect();
    Ok(Report {
        title: "Connections by name".into(),
        facts: report::facts(&sbx, options, seed),
        columns: COLUMNS.to_vec(),
        rows,
        ..Report::default()
    })
}

impl Entry {
    fn run_once(&mut self, keep: bool) {
        let Ok(subject) = &mut self.state else { return };
        let figures = subject.output().and_then(|output| {
            let last = output.lines().last().unwrap_or_default();
            let figures: Vec<f64> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
            <[f64; MEASURED]>::try_from(figures).map_err(|_| format!("printed {last:?}"))
        });
        match figures {
            Ok(figures) if keep => self.samples.iter_mut().zip(figures).for_each(|(all, new)| all.push(new)),
            Ok(_) => {}
            Err(e) => self.state = Err(Outcome::Failed(e)),
        }
    }
}

/// Times are compared by their difference inside each round.
fn row(entry: &Entry, all: &[Entry]) -> Row {
    let outcome = match &entry.state {
        Err(outcome) => outcome.clone(),
        Ok(_) => {
            let direct = all.first().unwrap_or(entry);
            let figure = |(own, base): (&Vec<f64>, &Vec<f64>)| {
                let over = own.iter().zip(base).map(|(own, base)| own - base).collect();
                [Some(Sorted::new(own.clone()).median()), Some(Sorted::new(over).median())]
            };
            Outcome::Measured(entry.samples.iter().zip(&direct.samples).flat_map(figure).collect())
        }
    };
    Row { id: entry.contestant.id, name: entry.contestant.name.clone(), outcome }
}
