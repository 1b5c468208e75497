exports.initials = (text) => text.split(/\s+/).filter(Boolean).map((word) => word[0].toUpperCase()).join("");
