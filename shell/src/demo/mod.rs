//! The story of `asof demo`: a power company whose tariffs are entered late, corrected, and delivered
//! later still. Data only.

/// A file of events and how it is taken in.
pub struct Events {
    /// Name of the file, without `.ndjson`.
    pub name: &'static str,
    /// The table.
    pub table: &'static str,
    /// Its lines.
    pub text: &'static str,
    /// Column of the valid time.
    pub valid: &'static str,
    /// Column of the system time.
    pub system: &'static str,
    /// What it holds.
    pub about: &'static str,
    /// Columns that are not kept.
    pub dropped: &'static str,
}

/// The files, in the order in which they come in; one commit each.
pub const EVENTS: [Events; 3] = [
    Events {
        name: "customers",
        table: "customers",
        text: include_str!("events/customers.ndjson"),
        valid: "since",
        system: "entered",
        about: "who is on which tariff: 'since' is when it holds, 'entered' when the office knew",
        dropped: "* except op, since, entered",
    },
    Events {
        name: "bills",
        table: "bills",
        text: include_str!("events/bills.ndjson"),
        valid: "day",
        system: "printed",
        about: "what was charged for a day, and when the bill was printed",
        dropped: "* except op",
    },
    Events {
        name: "branch",
        table: "customers",
        text: include_str!("events/branch.ndjson"),
        valid: "since",
        system: "entered",
        about: "entered at a branch office in February, delivered weeks later",
        dropped: "* except op, since, entered",
    },
];

/// A question, and what its answer teaches.
pub struct Question {
    /// What is asked, in words.
    pub words: &'static str,
    /// The SQL.
    pub sql: &'static str,
    /// Why the answer is what it is, in one sentence.
    pub why: &'static str,
}

/// The five questions.
pub const QUESTIONS: [Question; 5] = [
    Question {
        words: "Who is on which tariff?",
        sql: "SELECT id, name, tariff\nFROM customers\nORDER BY id",
        why: "No clause: the latest state of the latest belief. Ben left in April and came back in May.",
    },
    Question {
        words: "Who was on which tariff on 10 March?",
        sql: "SELECT id, name, tariff\nFROM customers FOR VALID_TIME AS OF '2026-03-10'\nORDER BY id",
        why: "Valid time is when a fact held: Ada's night tariff counts from 1 March, although it was entered on the 20th.",
    },
    Question {
        words: "And what did the office believe about 10 March when it printed bills on the 12th?",
        sql: "SELECT id, name, tariff\nFROM customers FOR VALID_TIME AS OF '2026-03-10'\n               FOR SYSTEM_TIME AS OF '2026-03-12 08:00:00'\nORDER BY id",
        why: "System time is when it was known: Ada's change and Cleo's correction were still to come.",
    },
    Question {
        words: "Which bills were right when they were printed, and wrong now?",
        sql: "SELECT b.id AS bill, known.name, b.charged, known.tariff AS known_then, now.tariff AS known_now\nFROM bills b\nJOIN customers FOR VALID_TIME AS OF b.day FOR SYSTEM_TIME AS OF b.printed known ON known.id = b.customer\nJOIN customers FOR VALID_TIME AS OF b.day now ON now.id = b.customer\nORDER BY b.id",
        why: "Each bill asks at its own day and its own printing time: 101 and 103 were right by the books, and need a refund.",
    },
    Question {
        words: "How many customers did this store itself know for 20 February, before the branch office delivered?",
        sql: "SELECT\n  (SELECT count(*) FROM customers FOR VALID_TIME AS OF '2026-02-20' FOR COMMIT AS OF 2) AS before_delivery,\n  (SELECT count(*) FROM customers FOR VALID_TIME AS OF '2026-02-20') AS now",
        why: "Dora was entered in February but came with commit 3: a question bounded by a commit never changes its answer.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_holds_what_it_promises() {
        for events in &EVENTS {
            for line in events.text.lines() {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                assert!(event[events.valid].is_string() && event[events.system].is_string(), "{line}");
            }
        }
        let customers: Vec<serde_json::Value> =
            EVENTS[0].text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        let late_valid = customers
            .iter()
            .any(|e| e["since"].as_str() < Some("2026-03-02") && e["entered"].as_str() > Some("2026-03-10"));
        let deleted = customers.iter().position(|e| e["op"] == "d").unwrap();
        assert!(
            late_valid
                && customers[deleted + 1..]
                    .iter()
                    .any(|e| e["op"] == "c" && e["id"] == customers[deleted]["id"])
        );
        let newest = customers.iter().filter_map(|e| e["entered"].as_str()).max();
        assert!(EVENTS[2].text.lines().all(|l| {
            let event: serde_json::Value = serde_json::from_str(l).unwrap();
            event["entered"].as_str() < newest
        }));
    }

    #[test]
    fn every_question_but_the_first_travels() {
        assert!(!QUESTIONS[0].sql.contains("AS OF"));
        assert!(QUESTIONS[1..].iter().all(|q| q.sql.contains("AS OF")));
    }
}
