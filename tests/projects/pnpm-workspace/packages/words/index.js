const { countBy } = require("lodash");

exports.frequencies = (text) => countBy(text.toLowerCase().match(/\p{L}+/gu) ?? []);
