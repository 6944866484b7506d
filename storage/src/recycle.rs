//! Vectors that outlive the borrows of their items.

/// An empty vector with the allocation of another one, for items that differ in their lifetimes only.
/// (Items of another size or alignment get a new allocation.)
pub fn recycle<A, B>(mut used: Vec<A>) -> Vec<B> {
    used.clear();
    used.into_iter().map(|_| unreachable!("the vector is empty")).collect()
}

#[cfg(test)]
mod tests {
    use super::recycle;

    #[test]
    fn the_allocation_is_the_same_and_empty() {
        let text = String::from("long");
        let mut words: Vec<&str> = Vec::with_capacity(100);
        words.push(&text);
        let (before, capacity) = (words.as_ptr().cast::<u8>(), words.capacity());
        let words: Vec<&'static str> = recycle(words);
        assert!(words.is_empty());
        assert_eq!((words.as_ptr().cast::<u8>(), words.capacity()), (before, capacity));
    }
}
