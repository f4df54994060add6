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
