import { type ConfigBlock, LONGEST_SECONDS, type Rule } from '@plat/config'
import Type from 'typebox'

/** Document 3, core rule 4. */
const adminListenDiffers: Rule = (block) =>
  block.adminListen !== '' && block.adminListen === block.listen
    ? [{ path: 'adminListen', message: `must differ from listen, both are ${block.listen}`, severity: 'error' }]
    : []

/** Listeners and HTTP (document 3). */
export const listenersBlock = {
  path: '',
  feature: 'listeners',
  built: true,
  schema: Type.Object({
    listen: Type.String({
      default: ':8080',
      minLength: 1,
      format: 'listen-address',
      description: 'Main listener (MCP, /llm, /a2a, agent API).',
    }),
    adminListen: Type.String({
      default: '',
      format: 'listen-address',
      description:
        'When set, admin endpoints, `/metrics` and profiling are served only there; the main listener answers 404 for them.',
    }),
    maxBodyBytes: Type.Integer({ default: 4_194_304, minimum: 1, description: 'Largest request body, in bytes.' }),
    bodyReadTimeoutSeconds: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: LONGEST_SECONDS,
      description: 'Body read time; streaming and approval waits are unlimited.',
    }),
    upstreamTimeoutSeconds: Type.Integer({
      default: 60,
      minimum: 1,
      maximum: LONGEST_SECONDS,
      description: 'Wait for upstream response headers.',
    }),
    upstreamCAFile: Type.String({ default: '', file: 'error', description: 'PEM CA bundle added for upstream TLS.' }),
    corsOrigins: Type.Array(Type.String({ minLength: 1 }), { default: [], description: 'Allowed browser origins.' }),
    logLevel: Type.String({
      default: 'info',
      description: '`debug`, `info`, `warn`, `error` (other values mean info); JSON logs on stdout.',
    }),
    shutdownDelaySeconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: LONGEST_SECONDS,
      description: 'After SIGTERM keep serving this long while `/readyz` fails.',
    }),
    shutdownTimeoutSeconds: Type.Integer({
      default: 20,
      minimum: 0,
      maximum: LONGEST_SECONDS,
      description: 'Time for in-flight requests.',
    }),
  }),
  rules: [adminListenDiffers],
} satisfies ConfigBlock
