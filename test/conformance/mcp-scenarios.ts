/**
 * The scenarios of the MCP conformance suites, server side, as they stand with the gateway in between. `same`: the gateway must have
 * the verdict that the server behind it has alone. `open`: not carried yet, for the reason given; one that passes through the gateway
 * fails the run until it is moved. A scenario that a suite has and this table lacks fails the run too.
 * @table
 */
const SAME = [
  'server-initialize',
  'server-session-lifecycle',
  'server-stateless',
  'logging-set-level',
  'ping',
  'completion-complete',
  'tools-list',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-with-logging',
  'tools-call-error',
  'tools-call-with-progress',
  'json-schema-2020-12',
  'server-sse-polling',
  'server-sse-multiple-streams',
  'resources-list',
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
  'resources-subscribe',
  'resources-unsubscribe',
  'sep-2164-resource-not-found',
  'prompts-list',
  'prompts-get-simple',
  'prompts-get-with-args',
  'prompts-get-embedded-resource',
  'prompts-get-with-image',
  'dns-rebinding-protection',
  'caching',
  'http-header-validation',
  'http-custom-header-server-validation',
  'tools-call-sampling',
  'tools-call-elicitation',
  'elicitation-sep1034-defaults',
  'elicitation-sep1330-enums',
  'input-required-result-basic-elicitation',
  'input-required-result-basic-sampling',
  'input-required-result-basic-list-roots',
  'input-required-result-request-state',
  'input-required-result-multiple-input-requests',
  'input-required-result-multi-round',
  'input-required-result-non-tool-request',
  'input-required-result-result-type',
  'input-required-result-tampered-state',
  'input-required-result-capability-check',
  'input-required-result-missing-input-response',
  'input-required-result-unsupported-methods',
  'input-required-result-ignore-extra-params',
  'input-required-result-validate-input',
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
]

const OPEN: Readonly<Record<string, string>> = {}

/** Scenarios whose verdict says nothing here, with the reason: they pass without having seen anything. */
const VACUOUS: Readonly<Record<string, string>> = {
  'tasks-status-notifications': 'passes with no check at all when a server has no tasks',
}

/** The listed status of a scenario; null if it is not listed. */
export function listedAs(scenario: string): 'same' | 'open' | 'vacuous' | null {
  if (SAME.includes(scenario)) return 'same'
  if (Object.hasOwn(OPEN, scenario)) return 'open'
  return Object.hasOwn(VACUOUS, scenario) ? 'vacuous' : null
}
