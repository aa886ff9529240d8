import { type ConfigBlock, key, requires } from '@plat/config'
import Type from 'typebox'

/** `otel` (document 3): traces. */
export const otelBlock = {
  path: 'otel',
  feature: 'otel',
  built: false,
  schema: Type.Object({
    enabled: key.flag('Export spans; off only propagates trace context.'),
    endpoint: key.url(
      'OTLP/HTTP base, `/v1/traces` is appended; required when enabled; must pass the residency check.',
    ),
    protocol: key.choice(['http/json'], 'http/json', 'Encoding.'),
    headersFile: key.file('Headers of every export, `Name: value` lines.'),
    caFile: key.file('Authorities of the endpoint.'),
    serviceName: key.text('`service.name`.', 'plat-gateway'),
    sampleRatio: key.ratio('Part of the traces that begin here.', 1, 0, 1),
    recordArgs: key.flag('Hash and size of arguments, never more.'),
    recordUser: key.flag('The user of a session.'),
    resourceAttributes: key.map(Type.String(), 'Further attributes of every span.'),
    maxQueueSize: key.whole('Spans that wait; overflow is dropped and counted.', 2048, 1),
    maxExportBatchSize: key.whole('Spans of one export.', 512, 1),
    exportIntervalMillis: key.millis('Time between two exports.', 5000),
    exportTimeoutSeconds: key.seconds('Time for one export.', 10),
    genAI: key.group(
      {
        captureContent: key.flag('Prompts and answers, always redacted.'),
        contentDlpProfile: key.text('Profile that redacts them.'),
        maxContentBytes: key.whole('Larger content is dropped, not truncated.', 16_384, 1),
        emitLegacySystem: key.flag('`gen_ai.system` beside its successor.'),
      },
      'What spans say of models.',
    ),
  }),
  rules: [requires('otel', ['endpoint'], ({ enabled }) => enabled === true, 'with otel.enabled')],
} satisfies ConfigBlock
