//! The random numbers of RandomAccess: x^63 + x^2 + x + 1 over GF(2), from any position in the stream.

/// The polynomial.
const POLYNOMIAL: u64 = 7;

/// The period of the stream.
const PERIOD: i64 = 1_317_624_576_693_539_401;

/// Returns the next number of the stream.
#[inline]
pub fn next(number: u64) -> u64 {
    (number << 1) ^ if (number as i64) < 0 { POLYNOMIAL } else { 0 }
}

/// Returns number `index` of the stream, as HPCC's `HPCC_starts` computes it; number 0 is 1.
pub fn start(index: i64) -> u64 {
    let index = index.rem_euclid(PERIOD);
    if index == 0 {
        return 1;
    }
    let mut squares = [0_u64; 64];
    let mut number = 1_u64;
    for square in &mut squares {
        *square = number;
        number = next(next(number));
    }
    let mut bit = 62;
    while bit >= 0 && index >> bit & 1 == 0 {
        bit -= 1;
    }
    let mut number = 2_u64;
    while bit > 0 {
        number = (0..64).filter(|bit| number >> bit & 1 == 1).fold(0, |sum, bit| sum ^ squares[bit]);
        bit -= 1;
        if index >> bit & 1 == 1 {
            number = next(number);
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_where_so_many_steps_lead() {
        let mut number = 1;
        for index in 0..2_000 {
            assert_eq!(start(index), number, "{index}");
            number = next(number);
        }
    }

    #[test]
    fn a_start_far_away_goes_on_as_the_stream_does() {
        for index in [1 << 20, 1 << 40, PERIOD - 5, PERIOD + 3, -1] {
            assert_eq!(next(start(index)), start(index + 1), "{index}");
        }
    }
}
