const { frequencies } = require("words");

exports.report = (text) => Object.entries(frequencies(text)).map(([word, times]) => `${word}: ${times}`).join("\n");
