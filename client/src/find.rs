//! Where the `sbx` program is.

use crate::error::{Error, ErrorKind};
use crate::path::{is_program, way};
use crate::text::{cause, shown};
use std::ffi::OsStr;
use std::path::PathBuf;

/// The first `sbx` in an absolute directory of a search path.
///
/// Whoever may change it, or a link that leads to it, decides about every later run. So no part of the way may lie in
/// `writable`, where the commands write.
pub fn in_path(path: Option<&OsStr>, writable: &[PathBuf]) -> Result<PathBuf, Error> {
    let directories = std::env::split_paths(path.unwrap_or_default()).filter(|dir| dir.is_absolute());
    let found = directories.map(|dir| dir.join("sbx")).find(|file| is_program(file)).ok_or_else(|| {
        Error::new(
            ErrorKind::NoSbx,
            "cannot find sbx: no absolute directory in PATH has it; install it, or name the file with \
             Sandbox::program",
        )
    })?;
    // A command may plant a link that leads to a program of the system, which takes the arguments for its own.
    let way = way(&found);
    for place in writable {
        let place = place.canonicalize().map_err(|error| {
            let why = format!("cannot use '{}': {}", shown(place), cause(&error));
            Error::new(ErrorKind::NoSbx, why)
        })?;
        if way.passes(&place) {
            return Err(Error::new(
                ErrorKind::NoSbx,
                format!(
                    "refused to use '{}': it is in '{}', or reached by a link there, where commands may change it; \
                     name another file with Sandbox::program",
                    shown(&found),
                    shown(&place)
                ),
            ));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    #[test]
    fn only_absolute_directories_outside_of_the_workspace_count() {
        let base = std::env::temp_dir().join(format!("sbx-find-{}", std::process::id()));
        let (tools, workspace) = (base.join("tools"), base.join("workspace"));
        for dir in [&tools, &workspace] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join("sbx"), "").unwrap();
            fs::set_permissions(dir.join("sbx"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let find = |dirs: &[&Path]| {
            let path = std::env::join_paths(dirs.iter().map(|dir| dir.as_os_str())).unwrap();
            in_path(Some(&path), std::slice::from_ref(&workspace)).map_err(|error| error.to_string())
        };
        let relative = Path::new("relative");
        assert_eq!(find(&[relative, Path::new(""), &base, &tools]), Ok(tools.join("sbx")));
        assert!(find(&[&workspace, &tools]).unwrap_err().contains("workspace"));
        // Nor may a link that is there lead out, by whatever part of the way.
        let (bin, linked) = (workspace.join("bin"), base.join("linked"));
        fs::create_dir(&bin).unwrap();
        symlink("/bin/sh", bin.join("sbx")).unwrap();
        symlink(&tools, workspace.join("tools")).unwrap();
        symlink(&bin, &linked).unwrap();
        symlink(workspace.join("tools/sbx"), base.join("sbx")).unwrap();
        let up = base.join("linked/../tools");
        for dir in [&bin, &workspace.join("tools"), &linked, &up, &base] {
            let said = find(&[dir, &tools]).unwrap_err();
            assert!(said.contains("where commands may change it"), "{said}");
        }
        fs::remove_file(base.join("sbx")).unwrap();
        symlink("tools/sbx", base.join("sbx")).unwrap();
        assert_eq!(find(&[&base]), Ok(base.join("sbx")));
        assert!(find(&[Path::new(""), Path::new(".")]).unwrap_err().contains("cannot find sbx"));
        fs::set_permissions(tools.join("sbx"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(find(&[&tools]).is_err());
        fs::remove_dir_all(&base).unwrap();
    }
}
