//! Sorting against the plainest comparison.

use super::*;

#[test]
fn batches_are_sorted_by_key_and_then_by_rule_b3_descending() {
    let mut numbers = Numbers(1);
    for round in 0..60 {
        let n = 1 + numbers.below(200);
        let batch = events(&mut numbers, n);
        for declared in [false, true] {
            let sorted = sort_batch(&batch, order(declared)).expect("sorted");
            assert_eq!(sorted, naive_sort(&batch, order(declared)), "round {round}, declared {declared}");
        }
    }
}

#[test]
fn truncates_come_before_every_key_and_a_moved_row_before_its_old_side() {
    let schema = small_schema();
    let mut head = EventHead::new(Op::Update, OriginId(0), 1);
    let same = [Cell::Text("k")];
    head.previous = Some(&same);
    let mut rows = vec![Vec::new(), Vec::new()];
    encode_row(&mut rows[0], &head, &[(ColumnId(0), Cell::Text("k"))]);
    // Older than the rows, and its empty key looks like all that differs between the keys.
    encode_row::<Cell<'_>>(&mut rows[1], &EventHead::new(Op::Truncate, OriginId(0), 0), &[]);
    let sorted = sort_batch(&decode(&rows, &schema, 1), order(false)).expect("sorted");
    let sorted = EventColumns::new(sorted).expect("events");
    let ops: Vec<Op> = (0..sorted.len()).map(|i| sorted.operation(i)).collect();
    assert_eq!(ops, [Op::Truncate, Op::Update, Op::MovedAway]);
}

#[test]
fn an_origin_without_a_rank_and_a_foreign_batch_are_refused() {
    let batch = events(&mut Numbers(2), 50);
    let few = EventOrder { ranks: &RANKS[..2], system_declared: false };
    let e = sort_batch(&batch, few).expect_err("no rank").to_string();
    assert!(e.contains("has no rank, only 2 are given"), "{e}");
    let e = sort_batch(&batch.project(&[1, 0]).expect("two columns"), order(false)).expect_err("foreign");
    assert!(matches!(e, RunError::NotEvents(_)), "{e}");
}
