use super::*;

fn recipe(habit: u8, order: &[(u32, u32)], pairs: &[(&str, &str)]) -> Recipe {
    let mut recipe = Recipe::new(Habit(habit), order.to_vec());
    for (number, (guess, row)) in pairs.iter().enumerate() {
        recipe.note(number as u32, guess.as_bytes(), row.as_bytes());
    }
    recipe
}

#[test]
fn differences_and_order_give_the_rows_again() {
    let pairs =
        [("same", "same"), ("prefix-x-suffix", "prefix-yy-suffix"), ("aaa", "aa"), ("", "new"), ("old", "")];
    let whole = recipe(5, &[], &pairs);
    assert_eq!(Recipe::decode(&whole.encode()).as_ref(), Ok(&whole));
    let guesses: Vec<&[u8]> = pairs.iter().map(|(guess, _)| guess.as_bytes()).collect();
    let (ends, bytes) = whole.rows(&guesses, &[0; 5]).expect("rows");
    assert_eq!(bytes, pairs.map(|(_, row)| row).concat().into_bytes());
    assert_eq!(ends.len(), 5);
    // Rows from two origins, as they came; what the columns give is ascending by origin.
    let mixed = recipe(0, &[(7, 1), (3, 2), (7, 1)], &[]);
    let (_, bytes) = mixed.rows(&[b"a", b"b", b"c", b"d"], &[3, 3, 7, 7]).expect("rows");
    assert_eq!(bytes, b"cabd");
    assert_eq!(Recipe::decode(&mixed.encode()), Ok(mixed));
}

#[test]
fn a_recipe_for_other_rows_gives_none() {
    let pairs = [("abc", "axc")];
    assert_eq!(recipe(0, &[], &pairs).rows(&[], &[]), None, "a difference of a row that is not there");
    assert_eq!(recipe(0, &[], &pairs).rows(&[b""], &[0]), None, "a shorter row");
    let order = recipe(0, &[(1, 2)], &[]);
    assert_eq!(order.rows(&[b"a"], &[1]), None, "a row too few");
    assert_eq!(order.rows(&[b"a", b"b", b"c"], &[1, 1, 1]), None, "a row too many");
    assert_eq!(order.rows(&[b"a", b"b"], &[1, 2]), None, "another origin");
}

#[test]
fn places_tell_the_order_unless_an_origin_goes_back() {
    let order = |places: &[(u32, u64, u32)]| order_of(places.iter().copied());
    assert_eq!(order(&[(0, 1, 0), (0, 1, 1), (0, 2, 0), (4, 0, 0)]), Some(vec![]));
    assert_eq!(order(&[(1, 1, 0), (0, 5, 0), (0, 6, 0), (1, 2, 0)]), Some(vec![(1, 1), (0, 2), (1, 1)]));
    assert_eq!(order(&[(0, 1, 0), (0, 1, 0)]), None, "twice the same place");
    assert_eq!(order(&[(0, 2, 0), (1, 0, 0), (0, 1, 0)]), None, "back");
    assert_eq!(order(&[(u32::MAX, 0, 0)]), None, "an origin beyond all");
}

#[test]
fn any_bytes_are_a_recipe_or_an_error() {
    let good = recipe(15, &[(1, 1), (0, 1)], &[("a", "b"), ("c", "c")]).encode();
    for at in 0..good.len() {
        let _ = Recipe::decode(&good[..at]);
        for value in 0..=255 {
            let mut changed = good.clone();
            changed[at] = value;
            let _ = Recipe::decode(&changed).map(|r| r.rows(&[b"a", b"c"], &[0, 1]));
        }
    }
    assert!(Recipe::decode(&[]).is_err());
    assert!(Recipe::decode(&[16, 0, 0]).is_err(), "a newer version");
    assert!(Recipe::decode(&[0, 0, 0, 0]).is_err(), "bytes behind");
}
