// veraPDF on PDF files: java -cp JAR org.mozilla.javascript.tools.shell.Main verapdf.js PROFILE FILE [PROFILE FILE]...
// PROFILE is one of veraPDF's, such as PDFUA-1, for the file after it. Prints a line of JSON per file.
// The profile is read here: the jar's own reader needs JAXB, which was left out of the jar.

var pdfa = Packages.org.verapdf.pdfa, profiles = pdfa.validation.profiles.Profiles
var flavours = pdfa.flavours.PDFAFlavour

function childrenOf(element, name) {
  var found = []
  for (var child = element.getFirstChild(); child != null; child = child.getNextSibling())
    if (child.getNodeName() == name) found.push(child)
  return found
}

function textOf(element, name) {
  var found = childrenOf(element, name)
  return found.length ? found[0].getTextContent() : null
}

function ruleOf(element) {
  var id = childrenOf(element, "id")[0], error = childrenOf(element, "error")[0], given = new java.util.ArrayList()
  childrenOf(childrenOf(error, "arguments")[0], "argument").forEach(function (argument) {
    given.add(pdfa.validation.profiles.ErrorArgumentImpl.fromValues(argument.getTextContent(), null, null))
  })
  return profiles.ruleFromValues(
    profiles.ruleIdFromValues(
      flavours.Specification.valueOf(id.getAttribute("specification")),
      id.getAttribute("clause"), parseInt(id.getAttribute("testNumber"), 10)),
    element.getAttribute("object"), element.getAttribute("deferred") == "true" ? java.lang.Boolean.TRUE : null,
    element.getAttribute("tags"), textOf(element, "description"), textOf(element, "test"),
    profiles.errorFromValues(textOf(error, "message"), given), new java.util.ArrayList())
}

function variableOf(element) {
  return profiles.variableFromValues(
    element.getAttribute("name"), element.getAttribute("object"),
    textOf(element, "defaultValue"), textOf(element, "value"))
}

function profileNamed(name) {
  var stream = java.lang.ClassLoader.getSystemResourceAsStream("org/verapdf/pdfa/validation/" + name + ".xml")
  var root = javax.xml.parsers.DocumentBuilderFactory.newInstance().newDocumentBuilder().parse(stream).getDocumentElement()
  var rules = new java.util.HashSet(), variables = new java.util.HashSet()
  childrenOf(childrenOf(root, "rules")[0], "rule").forEach(function (rule) { rules.add(ruleOf(rule)) })
  childrenOf(childrenOf(root, "variables")[0], "variable").forEach(function (one) { variables.add(variableOf(one)) })
  var details = profiles.profileDetailsFromValues(name, "", "", new java.util.Date(0))
  return profiles.profileFromValues(
    flavours.valueOf(root.getAttribute("flavour")), details, "", rules, variables)
}

function checked(profile, path) {
  var parser = pdfa.Foundries.defaultInstance().createParser(new java.io.File(path), profile.getPDFAFlavour())
  var result = pdfa.validation.validators.ValidatorFactory.createValidator(profile, false).validate(parser)
  var failed = result.getTestAssertions().toArray().filter(function (one) { return one.getStatus() != "PASSED" })
  return {
    rules: profile.getRules().size(),
    checks: result.getTotalAssertions(),
    compliant: result.isCompliant(),
    failed: failed.map(function (one) {
      var rule = one.getRuleId()
      return rule.getClause() + "-" + rule.getTestNumber() + ": " + one.getMessage() + " @ " + one.getLocation().getContext()
    })
  }
}

var javax = Packages.javax
Packages.org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider.initialise()
var known = {}
for (var i = 0; i < arguments.length; i += 2) {
  var name = arguments[i]
  if (!known[name]) known[name] = profileNamed(name)
  print(JSON.stringify(checked(known[name], arguments[i + 1])))
}
