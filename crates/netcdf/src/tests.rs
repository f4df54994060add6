//! Files that are written and read back: packed integers, missing values of every type, attributes without numbers.

use super::*;
use netcdf3::{FileWriter, InvalidDataSet, Version};

/// Opens a file with a dimension `x` of `length` and the variables that `define` and `write` say.
///
/// An attribute of 16-bit integers has an even number of them: the writer fills a word up with other bytes than those
/// that the format says and the reader accepts.
fn file(
    length: usize,
    define: impl FnOnce(&mut DataSet) -> Result<(), InvalidDataSet>,
    write: impl FnOnce(&mut FileWriter),
) -> NetcdfFile {
    let mut set = DataSet::new();
    set.add_fixed_dim("x", length).unwrap();
    define(&mut set).unwrap();
    let folder = std::env::temp_dir();
    let id = std::thread::current().id();
    let path = folder.join(format!("isles-netcdf-{}-{id:?}.nc", std::process::id()));
    let mut writer = FileWriter::open(&path).unwrap();
    writer.set_def(&set, Version::Classic, 0).unwrap();
    write(&mut writer);
    writer.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    NetcdfFile::parse(bytes).unwrap()
}

/// The numbers of `v`, where those that are missing are `None`.
fn known(file: &mut NetcdfFile) -> Vec<Option<f64>> {
    file.numbers("v").unwrap().into_iter().map(|value| Some(value).filter(|value| !value.is_nan())).collect()
}

#[test]
fn packed_integers_are_unpacked_and_their_fill_value_is_missing() {
    let mut file = file(
        3,
        |set| {
            set.add_var_i16("v", &["x"])?;
            set.add_var_attr_f64("v", "scale_factor", vec![0.001])?;
            set.add_var_attr_f32("v", "add_offset", vec![0.5])?;
            set.add_var_attr_i16("v", "_FillValue", vec![-30_000; 2])?;
            set.add_var_attr_string("v", "units", "m s-1")
        },
        |writer| writer.write_var_i16("v", &[250, -30_000, 30_000]).unwrap(),
    );
    assert_eq!(known(&mut file), [Some(0.75), None, Some(30.5)]);
    assert_eq!((file.units("v").as_deref(), file.units("x")), (Some("m s-1"), None));
    assert_eq!(file.dimensions("v").unwrap(), ["x"]);
}

#[test]
fn missing_values_are_found_whatever_their_type() {
    let mut packed = file(
        3,
        |set| {
            set.add_var_i32("v", &["x"])?;
            set.add_var_attr_f64("v", "missing_value", vec![-999.0, -998.0])
        },
        |writer| writer.write_var_i32("v", &[-999, 7, -998]).unwrap(),
    );
    assert_eq!(known(&mut packed), [None, Some(7.0), None]);
    let mut single = file(
        3,
        |set| {
            set.add_var_f32("v", &["x"])?;
            set.add_var_attr_f64("v", "missing_value", vec![-1e34])
        },
        |writer| writer.write_var_f32("v", &[-1e34, 0.5, f32::NAN]).unwrap(),
    );
    assert_eq!(known(&mut single), [None, Some(0.5), None]);
}

#[test]
fn a_value_that_was_never_written_is_missing_unless_the_file_has_another_fill_value() {
    let short = |has_fill: bool| {
        file(
            2,
            |set| {
                set.add_var_i16("v", &["x"])?;
                if has_fill { set.add_var_attr_i16("v", "_FillValue", vec![1; 2]) } else { Ok(()) }
            },
            |writer| writer.write_var_i16("v", &[netcdf3::NC_FILL_I16, 1]).unwrap(),
        )
    };
    assert_eq!(known(&mut short(false)), [None, Some(1.0)]);
    assert_eq!(known(&mut short(true)), [Some(-32_767.0), None]);
    let mut bytes = file(
        2,
        |set| set.add_var_i8("v", &["x"]).map(|_| ()),
        |writer| writer.write_var_i8("v", &[netcdf3::NC_FILL_I8, 1]).unwrap(),
    );
    assert_eq!(known(&mut bytes), [Some(-127.0), Some(1.0)]);
}

#[test]
fn what_has_no_numbers_is_an_error_that_names_it() {
    let mut file = file(
        1,
        |set| {
            set.add_var_u8("v", &["x"])?;
            set.add_var_f64("w", &["x"])?;
            set.add_var_attr_f64("w", "scale_factor", vec![1.0, 2.0])?;
            set.add_var_f64("e", &["x"])?;
            set.add_var_attr_f64("e", "_FillValue", vec![])?;
            set.add_var_attr_f64("e", "add_offset", vec![])
        },
        |writer| {
            writer.write_var_u8("v", b"a").unwrap();
            writer.write_var_f64("w", &[1.0]).unwrap();
            writer.write_var_f64("e", &[1.0]).unwrap();
        },
    );
    let text = |file: &mut NetcdfFile, name: &str| file.numbers(name).unwrap_err().to_string();
    assert_eq!(text(&mut file, "u"), "no variable \"u\"; it has v, w, e");
    assert_eq!(text(&mut file, "v"), "variable \"v\" has letters; allowed: numbers");
    for (name, attribute) in [("w", "scale_factor"), ("e", "add_offset")] {
        let expected =
            format!("{attribute} of variable {name:?} is not a number; allowed: one finite number");
        assert_eq!(text(&mut file, name), expected);
    }
    let error = NetcdfFile::parse(b"no netCDF".to_vec()).err().unwrap().to_string();
    assert!(error.starts_with("not a netCDF file of the classic format ("), "{error}");
}

/// A file by the specification of the format, which the writer of `netcdf3` does not follow here: variables over the
/// dimensions `t`, of records, and `x`, of three; `kinds` are their types.
fn records(version: u8, count: u32, kinds: &[u32], data: &[u8]) -> Vec<u8> {
    let mut out = vec![b'C', b'D', b'F', version];
    let number = |out: &mut Vec<u8>, number: u32| out.extend(number.to_be_bytes());
    let numbers = |out: &mut Vec<u8>, all: &[u32]| all.iter().for_each(|one| number(out, *one));
    number(&mut out, count);
    numbers(&mut out, &[0x0a, 2, 1]);
    out.extend(b"t\0\0\0\0\0\0\0\0\0\0\x01x\0\0\0\0\0\0\x03");
    numbers(&mut out, &[0, 0, 0x0b, kinds.len() as u32]);
    let per_variable = 4 * if version == 1 { 15 } else { 16 };
    let begin = (out.len() + kinds.len() * per_variable) as u32;
    for (at, kind) in kinds.iter().enumerate() {
        numbers(&mut out, &[1]);
        out.extend([b'v' + at as u8, 0, 0, 0]);
        numbers(&mut out, &[2, 0, 1]);
        numbers(&mut out, &[0x0c, 1, 1]); // an attribute whose value is padded
        out.extend(b"a\0\0\0");
        numbers(&mut out, &[1, 1, 0x0500_0000]);
        numbers(&mut out, &[*kind, 8]);
        numbers(&mut out, &[0, begin + 8 * at as u32][usize::from(version == 1)..]);
    }
    assert_eq!(out.len() as u32, begin, "{kinds:?}");
    out.extend(data);
    out
}

#[test]
fn records_of_one_variable_of_small_values_have_no_padding_and_those_of_several_have() {
    let shorts = |all: &[i16]| all.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    let numbers = |bytes: Vec<u8>, name: &str| NetcdfFile::parse(bytes).unwrap().numbers(name).unwrap();
    let one = shorts(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let expected: Vec<f64> = (1..10).map(f64::from).collect();
    for version in [1, 2] {
        assert_eq!(numbers(records(version, 3, &[3], &one), "v"), expected, "version {version}");
        let bytes: Vec<u8> = (1..10).collect();
        assert_eq!(numbers(records(version, 3, &[1], &bytes), "v"), expected, "version {version}");
    }
    let padded = shorts(&[1, 2, 3, 0, 11, 12, 13, 0, 4, 5, 6, 0, 14, 15, 16, 0]);
    let two = records(1, 2, &[3, 3], &padded);
    assert_eq!(numbers(two.clone(), "v"), expected[..6]);
    assert_eq!(numbers(two, "w"), [11.0, 12.0, 13.0, 14.0, 15.0, 16.0]);
    // A truncated file remains truncated.
    let whole = records(1, 3, &[3], &one);
    for len in 0..whole.len() - 6 {
        let found = NetcdfFile::parse(whole[..len].to_vec()).map(|mut file| file.numbers("v"));
        assert!(!matches!(found, Ok(Ok(_))), "{len}");
    }
}
