//! Any bytes are a value or an error, and packed numbers are what they were packed from.

use super::bytes::{find_plain, find_with_fronts};
use super::delta::Deltas;
use super::header::Header;
use super::hybrid::Hybrid;
use super::values::{BYTE_STREAM_SPLIT, Physical, RLE_DICTIONARY, Values, is_known, read};
use super::*;
use proptest::prelude::*;

const PHYSICAL: [Physical; 5] =
    [Physical::Bool, Physical::Number(4), Physical::Number(8), Physical::Fixed(16), Physical::Bytes];

/// Packs numbers of `width` bits, bit by bit.
fn pack(numbers: &[u64], width: usize) -> Vec<u8> {
    let mut bytes = vec![0; (numbers.len() * width).div_ceil(8)];
    for (i, n) in numbers.iter().enumerate() {
        for bit in (0..width).filter(|b| n >> b & 1 == 1) {
            bytes[(i * width + bit) / 8] |= 1 << ((i * width + bit) % 8);
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packed_numbers_come_back(numbers in proptest::collection::vec(any::<u64>(), 1..40), width in 1usize..65) {
        let cut: Vec<u64> = numbers.iter().map(|n| if width < 64 { n & ((1 << width) - 1) } else { *n }).collect();
        let bytes = pack(&cut, width);
        for (i, n) in cut.iter().enumerate() {
            prop_assert_eq!(packed(&bytes, i, width), *n);
        }
    }

    #[test]
    fn any_bytes_are_values_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        encoding in 0i64..10,
        start in 0usize..40,
        n in 0usize..40,
    ) {
        let mut dictionary = Values::new(Physical::Number(8));
        read(Physical::Number(8), 0, &[7; 24], (3, 0..3), None, &mut dictionary).expect("three numbers");
        for physical in PHYSICAL.into_iter().filter(|p| is_known(*p, encoding)) {
            let mut values = Values::new(physical);
            if read(physical, encoding, &bytes, (64, start..start + n), Some(&dictionary), &mut values).is_ok()
                && !matches!(encoding, 2 | RLE_DICTIONARY)
            {
                prop_assert_eq!(values.len(), n);
            }
        }
        let _ = Header::parse(&bytes);
        let _ = find_plain(&bytes, start, b"key");
        let _ = find_with_fronts(&bytes, start, b"key");
        if let Ok(hybrid) = Hybrid::new(&bytes, n) {
            let _ = hybrid.read(start..start + n, |_| ());
        }
        let ones = Hybrid::new(&bytes, 1).and_then(|h| h.ones(start));
        prop_assert!(ones.is_err() || ones.is_ok_and(|n| n <= start));
        let _ = Deltas::new(&bytes).and_then(|mut d| d.skip(n).and_then(|_| d.end()));
    }

    #[test]
    fn levels_are_counted_as_they_are_read(
        stretches in proptest::collection::vec((any::<bool>(), 1u8..20, any::<[u8; 3]>()), 1..8),
        n in 0usize..90,
    ) {
        let (mut bytes, mut bits) = (Vec::new(), Vec::new());
        for (equal, length, packed) in stretches {
            if equal {
                bytes.extend([length << 1, packed[0] & 1]);
                bits.extend(std::iter::repeat_n(u64::from(packed[0] & 1), usize::from(length)));
            } else {
                bytes.push(3 << 1 | 1);
                bytes.extend(packed);
                bits.extend((0..24).map(|i| u64::from(packed[i / 8] >> (i % 8) & 1)));
            }
        }
        let n = n.min(bits.len());
        let ones = Hybrid::new(&bytes, 1).and_then(|h| h.ones(n));
        prop_assert_eq!(ones, Ok(bits[..n].iter().sum::<u64>() as usize));
        let mut found = Vec::new();
        Hybrid::new(&bytes, 1).and_then(|h| h.read(n / 2..n, |b| found.push(b))).expect("levels");
        prop_assert_eq!(&found, &bits[n / 2..n]);
    }
}

#[test]
fn values_split_over_a_page_are_put_together() {
    let bytes: Vec<u8> = (0..24).collect();
    let mut values = Values::new(Physical::Number(8));
    read(Physical::Number(8), BYTE_STREAM_SPLIT, &bytes, (3, 1..3), None, &mut values).expect("numbers");
    let Values::Numbers(numbers) = values else { panic!("not numbers") };
    let expected: Vec<i64> =
        [1u8, 2].map(|i| i64::from_le_bytes(std::array::from_fn(|part| part as u8 * 3 + i))).into();
    assert_eq!(numbers, expected);
}

#[test]
fn a_header_says_what_its_page_is() {
    // Version 2: kind 3, 100 bytes of 90, 8: { 1: 7 values, 2: 1, 3: 7, 4: encoding 5, 5: 3, 6: 0, 7: false }.
    let bytes = [
        0x15, 6, 0x15, 200, 1, 0x15, 180, 1, 0x5c, 0x15, 14, 0x15, 2, 0x15, 14, 0x15, 10, 0x15, 6, 0x15, 0,
        0x12, 0, 0, 99,
    ];
    let (header, length) = Header::parse(&bytes).expect("a header");
    assert_eq!(length, bytes.len() - 1);
    let expected = Header {
        kind: 3,
        uncompressed_bytes: 100,
        compressed_bytes: 90,
        values: 7,
        encoding: 5,
        levels_bytes: 3,
        compressed: false,
    };
    assert_eq!(header, expected);
    for n in 0..length {
        assert!(Header::parse(&bytes[..n]).is_err(), "the first {n} bytes");
    }
}
