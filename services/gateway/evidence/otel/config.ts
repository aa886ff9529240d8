import { defineBlock, key, namesProfile, type Problem, type RuleOf, requires } from '@plat/config'
import Type, { type Static } from 'typebox'

/** The default profile: every detector, and every hit redacted. */
const REDACT_ALL = 'redact-all'

const schema = Type.Object({
  enabled: key.flag('Export spans; off only propagates trace context.'),
  endpoint: key.url('OTLP/HTTP base, `/v1/traces` is appended; required when enabled; must pass the residency check.'),
  jurisdiction: key.jurisdiction('Where the collector runs; checked against the SovereigntyPolicy.'),
  protocol: key.choice(['http/json'], 'http/json', 'Encoding.'),
  headersFile: key.file('Headers of every export, `Name: value` lines.'),
  caFile: key.file('Authorities of the endpoint.'),
  serviceName: key.text('`service.name`.', 'plat-gateway'),
  sampleRatio: key.ratio('Part of the traces that begin here.', 1, 0, 1),
  recordArgs: key.flag('Adds hash and size of arguments, never their content.'),
  recordUser: key.flag('Adds the user of a session.'),
  resourceAttributes: key.map(Type.String(), 'Further attributes of the resource.'),
  maxQueueSize: key.whole('Spans that wait; overflow is dropped and counted.', 2048, 1),
  maxExportBatchSize: key.whole('Spans of one export.', 512, 1),
  exportIntervalMillis: key.millis('Time between two exports.', 5000),
  exportTimeoutSeconds: key.seconds('Time for one export.', 10),
  genAI: key.group(
    {
      captureContent: key.flag('Prompts and answers, always redacted.'),
      contentDlpProfile: key.text('Profile that redacts them; default built-in redact-all.'),
      maxContentBytes: key.whole('Larger content is dropped, not truncated.', 16_384, 1),
      emitLegacySystem: key.flag('`gen_ai.system` beside its successor.'),
    },
    'Attributes of model calls.',
  ),
})

/** A batch larger than the queue would never fill. */
const batchFits: RuleOf<typeof schema> = ({ maxExportBatchSize: batch, maxQueueSize: queue }): Problem[] => {
  if (batch === undefined || queue === undefined || batch <= queue) return []
  return [{ path: 'otel.maxExportBatchSize', message: `must be at most maxQueueSize, ${queue}`, severity: 'error' }]
}

/** The service name has a separate key. */
const nameStandsOnce: RuleOf<typeof schema> = ({ resourceAttributes: attributes = {} }): Problem[] => {
  const isThere = Object.hasOwn(attributes, 'service.name')
  const message = 'set otel.serviceName instead'
  return isThere ? [{ path: 'otel.resourceAttributes["service.name"]', message, severity: 'error' }] : []
}

/** `otel` (docs/spec/gateway.md): traces. */
export const otelBlock = defineBlock({
  path: 'otel',
  feature: 'otel',
  schema,
  rules: [
    requires('otel', ['endpoint'], ({ enabled }) => enabled === true, 'with otel.enabled'),
    namesProfile('otel.genAI.contentDlpProfile', REDACT_ALL),
    batchFits,
    nameStandsOnce,
  ],
})

export type OtelConfig = Readonly<Static<typeof otelBlock.schema>>
