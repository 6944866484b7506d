//! The arithmetic of the bench, and what it reads of a peer.

#[allow(dead_code)]
#[path = "../../benches/workload/figures.rs"]
mod figures;

use figures::*;
use std::time::Duration;

#[test]
fn a_median_is_the_middle_of_any_order() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
}

#[test]
fn a_percentile_is_one_of_the_times() {
    let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
    let of = |percent| percentile(&times, percent).as_millis();
    assert_eq!([of(0), of(50), of(99), of(100)], [1, 100, 198, 200]);
    assert_eq!(percentile(&times[..1], 50).as_millis(), 200);
    assert_eq!(percentile(&[], 50), Duration::ZERO);
}

#[test]
fn a_ratio_of_nothing_says_nothing() {
    assert_eq!(ratio(9.0, 3.0), Some(3.0));
    assert_eq!(ratio(9.0, 0.0), None);
    assert_eq!(ratio(f64::NAN, 1.0), None);
}

#[test]
fn numbers_have_the_digits_that_mean_something() {
    assert_eq!([734_912.4, 43.21, 1.239, 0.060_71].map(digits), ["734912", "43.2", "1.24", "0.0607"]);
    assert_eq!(spread(&[]), "-");
    assert_eq!(spread(&[2.0]), "2.00");
    assert_eq!(spread(&[3.0, 1.0, 2.0]), "2.00 (1.00 to 3.00, 3 rounds)");
}

#[test]
fn a_peer_is_heard_by_its_last_line() {
    let said = peer_answer("warning: {\n{\"ms\": {\"count\": 5.5}, \"wrong\": 0}\n\n").unwrap();
    assert_eq!(peer_number(&said, &["ms", "count"]), Ok(5.5));
    assert_eq!(peer_number(&said, &["wrong"]), Ok(0.0));
    assert_eq!(peer_number(&said, &["ms", "sum"]), Err("it says no ms.sum".into()));
    assert_eq!(peer_answer(" \n"), Err("it printed nothing".into()));
    assert_eq!(peer_answer("{\"ms\": 1}\nTraceback"), Err("its last line is no object: Traceback".into()));
    assert!(peer_answer("17").is_err());
}

#[test]
fn memory_is_read_by_its_whole_name() {
    let status = "VmHWM:\t    1000 kB\nRssAnonymous:\t 7 kB\nRssAnon:\t  500 kB\n";
    assert_eq!(status_megabytes(status, "RssAnon"), 0.512);
    assert_eq!(status_megabytes(status, "VmHWM"), 1.024);
    assert_eq!(status_megabytes(status, "RssFile"), 0.0);
}
