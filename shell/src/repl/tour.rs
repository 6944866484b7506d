//! `\tour`: the demo store, step by step. Each step says what is to be seen, runs it, and says what was seen.

use super::session::{Shell, Step};
use crate::backend::{Clocks, Names};
use crate::outcome::{Exit, Failure, Outcome};

/// A step of the tour.
struct Stop {
    title: &'static str,
    /// What is said before.
    before: &'static str,
    /// What is typed, one line each.
    lines: &'static [&'static str],
    /// What is said after.
    after: &'static str,
}

const STOPS: [Stop; 9] = [
    Stop {
        title: "what there is",
        before: "A power company keeps its customers and what it billed them for. \\d lists the tables, \\d TABLE shows one.",
        lines: &["\\d", "\\d customers"],
        after: "Both axes are declared: the events say when a fact held (valid time) and when the office knew it \
                (system time).",
    },
    Stop {
        title: "now",
        before: "A question without a clause is about the latest state, as it is known by now.",
        lines: &["SELECT * FROM customers ORDER BY id;"],
        after: "The line under the answer says which clocks were applied, and which commit of the store was asked.",
    },
    Stop {
        title: "what was true then",
        before: "FOR VALID_TIME AS OF asks about another time in the world.",
        lines: &["SELECT * FROM customers FOR VALID_TIME AS OF '2026-03-10' ORDER BY id;"],
        after: "Ada was on the night tariff on 10 March, although nobody knew until the 20th.",
    },
    Stop {
        title: "what was known then",
        before: "\\at moves a clock of the session, so that every question travels. It takes times as people write \
                 them, and says what it understood.",
        lines: &[
            "\\at system 2026-03-12 08:00",
            "SELECT * FROM customers FOR VALID_TIME AS OF '2026-03-10' ORDER BY id;",
            "\\at now",
        ],
        after: "By the books of 12 March Ada was on basic: her bill was right when it was printed. While a clock is \
                moved the prompt shows it; \\at now returns.",
    },
    Stop {
        title: "both at once",
        before: "\\timeline draws all that was ever held true of a key: valid time to the right, system time upwards.",
        lines: &["\\timeline customers 1"],
        after: "Read a row from left to right: that is one belief. Read upwards: that is how it changed.",
    },
    Stop {
        title: "what came in",
        before: "\\history lists the events of a key, in the order in which they count.",
        lines: &["\\history customers 2"],
        after: "Nothing is overwritten. Ben's delete in April ends his row there and nowhere else.",
    },
    Stop {
        title: "why is it so",
        before: "\\why says which event gave a cell its value: at a valid time, as known at a system time.",
        lines: &[
            "\\why customers 3 tariff at 2026-02-20 known 2026-03-12",
            "\\why customers 3 tariff at 2026-02-20",
            "\\why customers 2 tariff at 2026-04-10",
        ],
        after: "Cleo's tariff was corrected on 14 March; the event, its file and its commit are there for the auditor.",
    },
    Stop {
        title: "what changed since",
        before: "\\diff shows what is held true at one system time and not at another.",
        lines: &["\\diff customers 2026-03-12 now"],
        after: "Each fact with its valid time: what is removed was believed on the 12th, what is added is believed now.",
    },
    Stop {
        title: "row by row",
        before: "In a join each row may ask at its own times: here every bill at its day, as known when it was printed.",
        lines: &["SELECT b.id AS bill, b.charged, c.tariff AS known_then FROM bills b \
             JOIN customers FOR VALID_TIME AS OF b.day FOR SYSTEM_TIME AS OF b.printed c ON c.id = b.customer \
             ORDER BY b.id;"],
        after: "That is how training sets are made without a look into the future.",
    },
];

/// What is said at the end.
const END: &str = "\
That was the tour. Your own events come in with, outside of this shell:
  asof ingest shop.asof FILE --table T --key ID [--valid COLUMN] [--system COLUMN]
  asof shop.asof
\\? lists the commands; Tab completes; \\tour 1 begins again.";

/// Whether a store is that of `asof demo`.
fn is_demo(names: &Names) -> bool {
    let has = |table: &str, columns: &[&str]| {
        let found = names.tables.iter().find(|t| t.name == table);
        found.is_some_and(|t| columns.iter().all(|c| t.columns.iter().any(|own| own.name == *c)))
    };
    has("customers", &["id", "name", "tariff"])
        && has("bills", &["id", "customer", "charged", "day", "printed"])
}

impl Shell {
    pub(super) fn tour(&mut self, rest: &str) -> Outcome {
        let names = self.runner.backend().names();
        if !is_demo(&names) {
            return Err(Failure::new(
                Exit::Failed,
                "the tour shows the store of 'asof demo', and this is another one",
            )
            .hint("outside of this shell: asof demo, then asof asof-demo, and there \\tour")
            .hint("what it shows works here too: \\d, \\timeline, \\history, \\why, \\diff, \\at"));
        }
        let wrong = || {
            Failure::new(Exit::Failed, format!("there is no step {rest} of the tour"))
                .hint(format!("\\tour goes on, \\tour 1 to \\tour {} go to a step", STOPS.len()))
        };
        if !rest.is_empty() {
            let number: usize = rest.parse().map_err(|_| wrong())?;
            self.tour = number.checked_sub(1).filter(|n| *n < STOPS.len()).ok_or_else(wrong)?;
        }
        if self.runner.backend().clocks() != Clocks::default() {
            return Err(Failure::new(
                Exit::Failed,
                "a clock of the session is moved, and the tour would show other rows",
            )
            .hint("\\at now returns, then \\tour goes on"));
        }
        let Some(stop) = STOPS.get(self.tour) else {
            self.tour = 0;
            return self.print(&format!("{END}\n"));
        };
        self.show_stop(stop)
    }

    fn show_stop(&mut self, stop: &Stop) -> Outcome {
        let number = self.tour + 1;
        self.print(&format!(
            "\n{number} of {}: {}\n{}\n",
            STOPS.len(),
            stop.title,
            self.filled(stop.before)
        ))?;
        for line in stop.lines {
            self.print(&format!("\n> {line}\n"))?;
            if self.handle(line)? == Step::Quit {
                return Ok(());
            }
        }
        self.tour = number;
        let next = match number == STOPS.len() {
            true => "\\tour ends the tour.",
            false => "Try what you like; \\tour goes on.",
        };
        self.print(&format!("\n{}\n{next}\n", self.filled(stop.after)))
    }

    /// A text in lines that fit the screen.
    fn filled(&self, text: &str) -> String {
        super::meta::wrap(text, (self.screen.width)().unwrap_or(80).min(100)).join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::meta;
    use super::*;
    use crate::text::lex;

    #[test]
    fn every_line_of_the_tour_is_a_command_or_a_whole_statement() {
        for line in STOPS.iter().flat_map(|s| s.lines) {
            match meta::split(line) {
                Some(typed) => assert!(meta::find(typed.name).is_ok(), "{line}"),
                None => assert!(line.ends_with(';') && lex::is_complete(line), "{line}"),
            }
        }
    }

    #[test]
    fn only_the_demo_is_the_demo() {
        use crate::backend::Backend;
        assert!(!is_demo(&crate::testing::Fake::default().names()));
        assert!(!is_demo(&Names::default()));
    }
}
