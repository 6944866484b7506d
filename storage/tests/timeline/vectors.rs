//! Known histories with known rows, in every order of arrival. The numbers in the names of tests and
//! in comments are those of the project's list of test vectors.

use crate::bridge::{Table, both_ways, permutations};
use asofdb_storage::time::FOREVER;
use asofdb_storage::timeline::{Belief, Bound};
use asofdb_testkit::{Cell, Change, Model, Rectangle, Version};

const OPEN: i64 = FOREVER;

fn u(valid: i64, value: i64) -> Change {
    Change::upsert(0, valid, 0, &[(0, value)])
}

fn d(valid: i64) -> Change {
    Change::delete(0, valid, 0)
}

/// An upsert under IGNORE NULL: `None` is not authored.
fn ignoring(valid: i64, system: i64, values: [Option<i64>; 2]) -> Change {
    let given: Vec<(u32, i64)> =
        values.iter().enumerate().filter_map(|(c, v)| v.map(|v| (c as u32, v))).collect();
    Change::partial(0, valid, system, &given)
}

/// A table of two columns, arrived in the order given.
fn table(changes: &[Change]) -> Table {
    let mut changes = changes.to_vec();
    for (i, change) in changes.iter_mut().enumerate() {
        (change.position, change.commit) = (i as u64, 1 + i as u64 / 2);
    }
    Table::new(Model { columns: 2, system_declared: true, changes })
}

/// Calls `check` with the changes in every order of arrival.
fn in_every_order(changes: &[Change], mut check: impl FnMut(&Table)) {
    permutations(changes.len(), &mut |order| {
        check(&table(&order.iter().map(|i| changes[*i].clone()).collect::<Vec<_>>()));
    });
}

fn scd2_of(table: &Table, key: u32, tracked: Option<&[u32]>) -> Vec<Version> {
    let truncates = table.truncates();
    let history = table.history(&truncates, key);
    table.versions(&history, &mut Belief::new(), (OPEN, u64::MAX), tracked)
}

fn scd1_of(table: &Table, key: u32) -> Option<Vec<Option<i64>>> {
    let truncates = table.truncates();
    let history = table.history(&truncates, key);
    let row = table.row(&history, &Bound::LATEST).expect("no chain");
    let row: Option<Vec<_>> = row.map(|cells| cells.into_iter().map(Cell::shown).collect());
    let open = scd2_of(table, key, None).pop().filter(|v| v.1 == OPEN).map(|v| v.2);
    assert_eq!(row, open, "SCD type 1 is the open row of SCD type 2");
    row
}

/// Checks SCD type 2 of key 0: value of the first column, start, end.
fn expect_scd2(changes: &[Change], rows: &[(i64, i64, i64)]) {
    let rows: Vec<Version> = rows.iter().map(|(v, a, b)| (*a, *b, vec![Some(*v), None])).collect();
    in_every_order(changes, |table| assert_eq!(scd2_of(table, 0, None), rows));
}

fn expect_pairs(changes: &[Change], rows: &[(i64, i64, [Option<i64>; 2])]) {
    let rows: Vec<Version> = rows.iter().map(|(a, b, v)| (*a, *b, v.to_vec())).collect();
    in_every_order(changes, |table| assert_eq!(scd2_of(table, 0, None), rows));
}

type Row = (i64, (i64, i64), (i64, i64));

/// Checks the rectangles of key 0: value, valid time, system time.
fn expect_rectangles(changes: &[Change], rows: &[Row]) {
    let rectangle = |(value, valid, system): &Row| Rectangle {
        valid: *valid,
        system: *system,
        image: vec![Some(*value), None],
    };
    let mut expected: Vec<Rectangle> = rows.iter().map(rectangle).collect();
    expected.sort();
    in_every_order(changes, |table| assert_eq!(both_ways(table, 0, u64::MAX, None), expected));
}

fn at(mut change: Change, system: i64) -> Change {
    change.system = system;
    change
}

const OAXACA: i64 = 1;
const MONTERREY: i64 = 2;
const TIJUANA: i64 = 3;
const CANCUN: i64 = 4;
const GUADALAJARA: i64 = 5;
const MEXICALI: i64 = 6;
const CHIHUAHUA: i64 = 7;

fn employees() -> Vec<Change> {
    let row = |key, valid, city| Change::upsert(key, valid, 0, &[(0, key as i64), (1, city)]);
    vec![
        row(124, 1, OAXACA),
        row(123, 1, MONTERREY),
        row(125, 2, TIJUANA),
        row(126, 2, CANCUN),
        Change::delete(123, 6, 0),
        row(125, 6, GUADALAJARA),
        row(125, 5, MEXICALI),
        row(123, 5, CHIHUAHUA),
    ]
}

/// Every order of the changes of each key; the others stay, as they are other keys.
fn employees_in_every_order(extra: Option<Change>, mut check: impl FnMut(&Table)) {
    for key in 123..=126 {
        let all = employees();
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.key == key);
        permutations(own.len(), &mut |order| {
            let own = order.iter().map(|i| own[*i].clone());
            let first: Vec<Change> = own.clone().chain(extra.clone()).chain(others.clone()).collect();
            check(&table(&first));
            check(&table(&others.iter().cloned().chain(extra.clone()).chain(own).collect::<Vec<_>>()));
        });
    }
}

#[test]
fn scd1_of_the_employees_3_1() {
    employees_in_every_order(None, |table| {
        let city = |key| scd1_of(table, key).and_then(|row| row[1]);
        assert_eq!([123, 124, 125, 126].map(city), [None, Some(OAXACA), Some(GUADALAJARA), Some(CANCUN)]);
    });
}

#[test]
fn scd1_vectors_3_2_to_3_4() {
    let last = |changes: &[Change]| scd1_of(&table(changes), 0).and_then(|row| row[0]);
    in_every_order(&[u(10, 1), u(30, 3), u(20, 2)], |t| assert_eq!(scd1_of(t, 0), Some(vec![Some(3), None])));
    assert_eq!(last(&[d(20)]), None);
    assert_eq!(last(&[d(20), u(10, 1)]), None);
    in_every_order(&[d(20), u(10, 1), u(30, 3)], |t| assert_eq!(scd1_of(t, 0), Some(vec![Some(3), None])));
    in_every_order(&[u(10, 1), d(5), u(7, 9)], |t| assert_eq!(scd1_of(t, 0), Some(vec![Some(1), None])));
}

#[test]
fn scd2_of_the_employees_3_5() {
    employees_in_every_order(None, |table| {
        let rows = |key| -> Vec<(i64, i64, i64)> {
            let versions = scd2_of(table, key, None).into_iter();
            versions.map(|(a, b, image)| (image[1].unwrap_or(0), a, b)).collect()
        };
        assert_eq!(rows(123), [(MONTERREY, 1, 5), (CHIHUAHUA, 5, 6)]);
        assert_eq!(rows(124), [(OAXACA, 1, OPEN)]);
        assert_eq!(rows(125), [(TIJUANA, 2, 5), (MEXICALI, 5, 6), (GUADALAJARA, 6, OPEN)]);
        assert_eq!(rows(126), [(CANCUN, 2, OPEN)]);
    });
}

#[test]
fn deletes_before_what_they_end_3_6() {
    expect_scd2(&[d(20)], &[]);
    expect_scd2(&[d(20), u(10, 1)], &[(1, 10, 20)]);
    expect_scd2(&[u(10, 1), d(20), d(25), u(22, 2)], &[(1, 10, 20), (2, 22, 25)]);
    expect_scd2(&[d(20), d(30), u(10, 1), u(25, 2)], &[(1, 10, 20), (2, 25, 30)]);
}

#[test]
fn late_upserts_and_deletes_3_7_and_3_8() {
    expect_scd2(&[u(10, 1), d(20), u(30, 3), u(25, 9)], &[(1, 10, 20), (9, 25, 30), (3, 30, OPEN)]);
    expect_scd2(&[u(10, 1), u(40, 4)], &[(1, 10, 40), (4, 40, OPEN)]);
    expect_scd2(&[u(10, 1), u(40, 4), d(20)], &[(1, 10, 20), (4, 40, OPEN)]);
    let all = [u(10, 1), u(40, 4), d(20), u(30, 9)];
    expect_scd2(&all, &[(1, 10, 20), (9, 30, 40), (4, 40, OPEN)]);
    expect_scd2(&[u(17, 1), d(20)], &[(1, 17, 20)]);
    expect_scd2(&[u(17, 1), d(20), u(18, 2)], &[(1, 17, 18), (2, 18, 20)]);
    let all = [u(17, 1), d(20), u(18, 2), u(19, 3), u(5, 9)];
    expect_scd2(&all, &[(9, 5, 17), (1, 17, 18), (2, 18, 19), (3, 19, 20)]);
}

#[test]
fn tracked_columns_shape_rows_and_not_points_3_9() {
    let row = |valid, name, city| Change::upsert(0, valid, 0, &[(0, name), (1, city)]);
    let (alice, bob, charlie) = (1, 2, 3);
    let mut changes = vec![row(5, alice, 1), row(10, alice, 2), row(15, alice, 3), row(20, charlie, 4)];
    let image = |name, city| vec![Some(name), Some(city)];
    in_every_order(&changes, |table| {
        let rows = scd2_of(table, 0, Some(&[0]));
        assert_eq!(rows, [(5, 20, image(alice, 3)), (20, OPEN, image(charlie, 4))]);
    });
    changes.push(row(12, bob, 5));
    in_every_order(&changes, |table| {
        let rows = scd2_of(table, 0, Some(&[0]));
        let expected = [
            (5, 12, image(alice, 2)),
            (12, 15, image(bob, 5)),
            (15, 20, image(alice, 3)),
            (20, OPEN, image(charlie, 4)),
        ];
        assert_eq!(rows, expected);
        let bound = Bound { valid: 7, ..Bound::LATEST };
        let point = table.row(&table.history(&[], 0), &bound);
        assert_eq!(point, Ok(Some(vec![Cell::Int(alice), Cell::Int(1)])));
    });
}

#[test]
fn equal_neighbours_are_one_row_3_10() {
    expect_scd2(&[u(10, 1), u(20, 1)], &[(1, 10, OPEN)]);
    expect_scd2(&[u(10, 1), u(20, 1), u(15, 2)], &[(1, 10, 15), (2, 15, 20), (1, 20, OPEN)]);
    let all = [u(10, 1), u(20, 1), u(15, 2), d(12)];
    expect_scd2(&all, &[(1, 10, 12), (2, 15, 20), (1, 20, OPEN)]);
    employees_in_every_order(None, |table| {
        let rows = |key| -> Vec<(i64, i64, i64)> {
            let versions = scd2_of(table, key, Some(&[0])).into_iter();
            versions.map(|(a, b, image)| (image[1].unwrap_or(0), a, b)).collect()
        };
        assert_eq!(rows(123), [(CHIHUAHUA, 1, 6)]);
        assert_eq!(rows(124), [(OAXACA, 1, OPEN)]);
        assert_eq!(rows(125), [(GUADALAJARA, 2, OPEN)]);
        assert_eq!(rows(126), [(CANCUN, 2, OPEN)]);
    });
}

#[test]
fn an_upsert_by_default_3_11() {
    expect_scd2(&[u(10, 1), u(20, 2)], &[(1, 10, 20), (2, 20, OPEN)]);
}

/// Ours: the axis is the first field, so only the last of one instant is a row.
#[test]
fn tie_breaks_do_not_make_rows_3_12() {
    let tied = |tie, value| Change { tie, ..u(10, value) };
    expect_scd2(&[tied(Some(1), 1), tied(Some(2), 2), tied(None, 14)], &[(2, 10, OPEN)]);
}

#[test]
fn a_replay_changes_nothing_3_13() {
    let once = [u(10, 1), d(20), u(30, 3)];
    let twice: Vec<Change> = once.iter().chain(&once).cloned().collect();
    expect_scd2(&twice, &[(1, 10, 20), (3, 30, OPEN)]);
}

#[test]
fn a_truncate_ends_every_key_3_14() {
    employees_in_every_order(Some(Change::truncate(3, 0)), |table| {
        let city = |key| scd1_of(table, key).and_then(|row| row[1]);
        assert_eq!([124, 126].map(city), [None, None]);
        assert_eq!(city(125), Some(GUADALAJARA));
        let rows = scd2_of(table, 124, None);
        assert_eq!(rows, [(1, 3, vec![Some(124), Some(OAXACA)])]);
        assert_eq!(
            scd2_of(table, 123, None).iter().map(|v| (v.0, v.1)).collect::<Vec<_>>(),
            [(1, 3), (5, 6)]
        );
    });
}

#[test]
fn ignored_nulls_inherit_3_15() {
    let (l1, l2, r1, r3) = (1, 2, 11, 13);
    let all = [
        ignoring(1, 0, [Some(l1), Some(r1)]),
        ignoring(2, 0, [Some(l2), None]),
        ignoring(3, 0, [None, Some(r3)]),
    ];
    in_every_order(&all, |t| assert_eq!(scd1_of(t, 0), Some(vec![Some(l2), Some(r3)])));
    let all = [ignoring(1, 0, [Some(7), None]), d(2), ignoring(3, 0, [None, None])];
    in_every_order(&all, |t| assert_eq!(scd1_of(t, 0), Some(vec![None, None])));
    let target = Change::upsert(0, 1, 0, &[(0, 7), (1, 20)]);
    let by_default = Change::upsert(0, 2, 0, &[(1, 30)]);
    in_every_order(&[target.clone(), by_default], |t| assert_eq!(scd1_of(t, 0), Some(vec![None, Some(30)])));
    let ignored = ignoring(2, 0, [None, Some(30)]);
    in_every_order(&[target, ignored], |t| assert_eq!(scd1_of(t, 0), Some(vec![Some(7), Some(30)])));
}

#[test]
fn ignored_nulls_inherit_per_version_3_16() {
    let (a1, a3, a15, b1, b2) = (Some(1), Some(3), Some(15), Some(101), Some(102));
    let first = [ignoring(10, 0, [a1, b1]), ignoring(20, 0, [None, b2]), ignoring(30, 0, [a3, None])];
    let mut late = first.to_vec();
    late.push(ignoring(15, 0, [a15, None]));
    let rows = [(10, 15, [a1, b1]), (15, 20, [a15, b1]), (20, 30, [a15, b2]), (30, OPEN, [a3, b2])];
    expect_pairs(&late, &rows);
    let mut deleted = first.to_vec();
    deleted.push(d(25));
    expect_pairs(&deleted, &[(10, 20, [a1, b1]), (20, 25, [a1, b2]), (30, OPEN, [a3, None])]);
    let mut authored_null = ignoring(20, 0, [None, None]);
    authored_null.cells.insert(0, Cell::Null);
    let all = [ignoring(10, 0, [a1, None]), authored_null, ignoring(30, 0, [None, None])];
    expect_pairs(&all, &[(10, 20, [a1, None]), (20, OPEN, [None, None])]);
}

/// The worked example of the semantics, in seconds after ten.
#[test]
fn the_worked_example_3_17() {
    let (ten01, ten05) = (60, 300);
    let (twelve05, twelve10, twelve15) = (7_500, 7_800, 8_143);
    let (twelve20, twelve22, twelve25, twelve30, twelve40) = (8_400, 8_520, 8_700, 9_000, 9_600);
    let all = [
        at(u(ten01, 1), ten05),
        at(u(twelve15, 2), twelve20),
        at(u(twelve05, 3), twelve25),
        at(d(twelve30), twelve30),
    ];
    let rows = [
        (1, (ten01, OPEN), (ten05, twelve20)),
        (1, (ten01, twelve15), (twelve20, twelve25)),
        (1, (ten01, twelve05), (twelve25, OPEN)),
        (3, (twelve05, twelve15), (twelve25, OPEN)),
        (2, (twelve15, OPEN), (twelve20, twelve30)),
        (2, (twelve15, twelve30), (twelve30, OPEN)),
    ];
    expect_rectangles(&all, &rows);
    in_every_order(&all, |table| {
        let value = |valid, system| {
            let bound = Bound { valid, system, commit: u64::MAX };
            table.row(&table.history(&[], 0), &bound).expect("no chain").map(|row| row[0])
        };
        assert_eq!(value(twelve10, OPEN), Some(Cell::Int(3)));
        assert_eq!(value(twelve10, twelve22), Some(Cell::Int(1)));
        assert_eq!(value(twelve40, OPEN), None);
    });
}

#[test]
fn corrections_close_what_they_replace_3_18_to_3_20() {
    let (p, a, s) = (1, 2, 3);
    let rows = [
        (p, (0, OPEN), (60, 180)),
        (p, (0, 120), (180, OPEN)),
        (a, (120, OPEN), (180, 300)),
        (a, (120, 240), (300, OPEN)),
        (s, (240, OPEN), (300, OPEN)),
    ];
    expect_rectangles(&[at(u(0, p), 60), at(u(120, a), 180), at(u(240, s), 300)], &rows);
    let rows =
        [(1, (1100, OPEN), (1100, 1400)), (1, (1100, 1130), (1400, OPEN)), (2, (1130, OPEN), (1400, OPEN))];
    expect_rectangles(&[at(u(1100, 1), 1100), at(u(1130, 2), 1400)], &rows);
    let rows = [(1, (1, OPEN), (5, 8)), (2, (1, OPEN), (8, OPEN))];
    expect_rectangles(&[at(u(1, 1), 5), at(u(1, 2), 8)], &rows);
}

#[test]
fn late_system_times_rewrite_past_beliefs_3_21() {
    let (a, b, c) = (1, 2, 3);
    let before = [(a, (10, OPEN), (100, 300)), (a, (10, 30), (300, OPEN)), (c, (30, OPEN), (300, OPEN))];
    expect_rectangles(&[at(u(10, a), 100), at(u(30, c), 300)], &before);
    let after = [
        (a, (10, OPEN), (100, 200)),
        (a, (10, 20), (200, OPEN)),
        (b, (20, OPEN), (200, 300)),
        (b, (20, 30), (300, OPEN)),
        (c, (30, OPEN), (300, OPEN)),
    ];
    let all = [at(u(10, a), 100), at(u(30, c), 300), at(u(20, b), 200)];
    expect_rectangles(&all, &after);
    let table = table(&all);
    let history = table.history(&[], 0);
    let value = |commit| {
        let bound = Bound { valid: 25, system: 250, commit };
        table.row(&history, &bound).expect("no chain").map(|row| row[0])
    };
    assert_eq!((value(1), value(2)), (Some(Cell::Int(a)), Some(Cell::Int(b))), "a commit bound is a pin");
}

#[test]
fn bitemporal_deletes_and_repeats_3_22() {
    let (a, b) = (1, 2);
    let rows = [(a, (10, OPEN), (100, 200)), (a, (10, 20), (200, OPEN))];
    expect_rectangles(&[at(d(20), 200)], &[]);
    expect_rectangles(&[at(d(20), 200), at(u(10, a), 100)], &rows);
    let rows = [
        (a, (10, OPEN), (100, 200)),
        (a, (10, 20), (200, 300)),
        (a, (10, 15), (300, OPEN)),
        (b, (15, 20), (300, OPEN)),
    ];
    expect_rectangles(&[at(u(10, a), 100), at(d(20), 200), at(u(15, b), 300)], &rows);
    let rows = [(a, (20, OPEN), (100, 200)), (a, (10, OPEN), (200, OPEN))];
    expect_rectangles(&[at(u(20, a), 100), at(u(10, a), 200)], &rows);
}

#[test]
fn late_partial_updates_in_later_beliefs_only_3_22d() {
    let (a1, a15, b1, b2) = (Some(1), Some(15), Some(101), Some(102));
    let all = [ignoring(10, 100, [a1, b1]), ignoring(20, 200, [None, b2]), ignoring(15, 300, [a15, None])];
    in_every_order(&all, |table| {
        let rows = both_ways(table, 0, u64::MAX, None);
        let last: Vec<_> = rows.iter().filter(|r| r.system.1 == OPEN).collect();
        let expected = [((10, 15), [a1, b1]), ((15, 20), [a15, b1]), ((20, OPEN), [a15, b2])];
        let seen: Vec<_> = last.iter().map(|r| (r.valid, [r.image[0], r.image[1]])).collect();
        assert_eq!(seen, expected);
        assert!(last.iter().all(|r| r.system.0 == 300), "{last:?}");
    });
}

/// A snapshot's version is a truncate and its rows at one instant (rule B12).
#[test]
fn snapshots_replace_everything_3_24() {
    let (oaxaca, monterrey, tijuana, carmel, los_angeles) = (1, 2, 3, 4, 5);
    let version = |t: i64, rows: &[(u32, i64)]| {
        let upserts = rows.iter().map(move |(key, city)| Change::upsert(*key, t, t, &[(0, *city)]));
        std::iter::once(Change::truncate(t, t)).chain(upserts).collect::<Vec<_>>()
    };
    let versions = [
        version(0, &[(1, oaxaca), (2, monterrey), (3, tijuana)]),
        version(1, &[(2, carmel), (3, los_angeles), (4, 9), (6, 9)]),
        version(2, &[(2, carmel), (3, los_angeles), (4, 9), (6, 9)]),
    ];
    permutations(versions.len(), &mut |order| {
        let table = table(&order.iter().flat_map(|i| versions[*i].clone()).collect::<Vec<_>>());
        let rows = |key| -> Vec<(i64, i64, i64)> {
            let versions = scd2_of(&table, key, None).into_iter();
            versions.map(|(a, b, image)| (image[0].unwrap_or(0), a, b)).collect()
        };
        assert_eq!(rows(1), [(oaxaca, 0, 1)]);
        assert_eq!(rows(2), [(monterrey, 0, 1), (carmel, 1, OPEN)]);
        assert_eq!(rows(3), [(tijuana, 0, 1), (los_angeles, 1, OPEN)]);
        assert_eq!((rows(4), rows(6)), (vec![(9, 1, OPEN)], vec![(9, 1, OPEN)]));
        for key in 1..=6 {
            assert_eq!(both_ways(&table, key, u64::MAX, None), table.model.rectangles(key, u64::MAX, None));
        }
    });
}

/// "Same plane": bounded facts and a bounded delete, in the form of MariaDB.
#[test]
fn bounded_facts_as_mariadb_keeps_them_b13() {
    let (jan, feb, mar, y2030) = (1, 32, 60, 10_000);
    let (a, b) = (1, 2);
    let bounded = |change: Change, end, system| Change { valid_to: Some(end), ..at(change, system) };
    let all = [bounded(u(1, a), y2030, jan), bounded(u(10, b), 20, feb), bounded(d(15), 25, mar)];
    let rows = [
        (a, (1, y2030), (jan, feb)),
        (a, (1, 10), (feb, OPEN)),
        (b, (10, 20), (feb, mar)),
        (a, (20, y2030), (feb, mar)),
        (b, (10, 15), (mar, OPEN)),
        (a, (25, y2030), (mar, OPEN)),
    ];
    expect_rectangles(&all, &rows);
}
