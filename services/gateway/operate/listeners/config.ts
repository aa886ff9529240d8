import { defineBlock, LONGEST_SECONDS, type Problem, type RuleOf } from '@plat/config'
import { isTrustDomain } from '@plat/core'
import { defaultLimits, isAddressRange } from '@plat/http'
import Type from 'typebox'

const listenersSchema = Type.Object({
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
  maxConnectionsPerPeer: Type.Integer({
    default: defaultLimits.maxConnectionsPerPeer,
    minimum: 1,
    maximum: defaultLimits.maxConnections,
    description:
      'Open connections of one peer address, of IPv6 one /64, on each listener; more are closed as they come.',
  }),
  trustedProxies: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description:
      'Address ranges of load balancers and proxies in front of the gateway: `maxConnectionsPerPeer` does not hold for them.',
  }),
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
})

/** docs/spec/gateway.md, core rule 4. */
const adminListenDiffers: RuleOf<typeof listenersSchema> = (block) =>
  block.adminListen !== '' && block.adminListen === block.listen
    ? [{ path: 'adminListen', message: `must differ from listen, both are ${block.listen}`, severity: 'error' }]
    : []

/** Origins are compared as browsers send them: scheme, host and port only. */
const originsAreOrigins: RuleOf<typeof listenersSchema> = ({ corsOrigins = [] }) =>
  corsOrigins.flatMap((origin, index) =>
    origin === undefined || isOrigin(origin)
      ? []
      : [wrong(`corsOrigins[${index}]`, `must be an origin such as https://console.example, got ${quote(origin)}`)],
  )

const proxiesAreRanges: RuleOf<typeof listenersSchema> = ({ trustedProxies = [] }) =>
  trustedProxies.flatMap((range, index) =>
    range === undefined || isAddressRange(range)
      ? []
      : [wrong(`trustedProxies[${index}]`, `must be an address range such as 10.0.0.0/8, got ${quote(range)}`)],
  )

function isOrigin(text: string): boolean {
  return URL.canParse(text) && /^https?:/.test(text) && new URL(text).origin === text
}

function quote(text: string): string {
  return JSON.stringify(text)
}

function wrong(path: string, message: string, severity: Problem['severity'] = 'error'): Problem {
  return { path, message, severity }
}

/** Listeners and HTTP (docs/spec/gateway.md). */
export const listenersBlock = defineBlock({
  path: '',
  feature: 'listeners',
  schema: listenersSchema,
  rules: [adminListenDiffers, originsAreOrigins, proxiesAreRanges],
})

const tlsSchema = Type.Object({
  certFile: Type.String({
    default: '',
    file: 'error',
    description: 'Serving certificate in PEM, leaf first, reloaded on change; plain HTTP when empty.',
  }),
  keyFile: Type.String({ default: '', file: 'error', description: 'Its private key in PEM.' }),
  clientCAFile: Type.String({
    default: '',
    file: 'error',
    description: 'Trust bundle in PEM that client SVIDs must chain to.',
  }),
  svidMode: Type.Enum(['off', 'optional', 'required'], {
    default: 'off',
    description: 'Bind SVID client certificates to session tokens.',
  }),
  svidTrustDomains: Type.Array(Type.String({ minLength: 1 }), {
    default: [],
    description: 'Accepted trust domains; any of the bundle when empty.',
  }),
  reloadSeconds: Type.Integer({
    default: 30,
    minimum: 1,
    maximum: LONGEST_SECONDS,
    description: 'How often the files are looked at.',
  }),
})

/** certFile and keyFile are set together. */
const certificateWithKey: RuleOf<typeof tlsSchema> = ({ certFile, keyFile }) => {
  if ((certFile === '') === (keyFile === '')) return []
  const [missing, given] = certFile === '' ? ['certFile', 'keyFile'] : ['keyFile', 'certFile']
  return [wrong(`tls.${missing}`, `is required with tls.${given}`)]
}

/** The settings for client certificates are only valid together. */
const svidsNeedTrust: RuleOf<typeof tlsSchema> = ({ certFile, clientCAFile, svidMode, svidTrustDomains = [] }) => {
  if (svidMode !== 'off') {
    const needed = Object.entries({ certFile, clientCAFile }).filter(([, value]) => value === '')
    return needed.map(([key]) => wrong(`tls.${key}`, `is required with tls.svidMode ${svidMode}`))
  }
  const idle = {
    clientCAFile: clientCAFile !== '',
    svidTrustDomains: svidTrustDomains.some((domain) => domain !== undefined),
  }
  return Object.entries(idle).flatMap(([key, set]) =>
    set ? [wrong(`tls.${key}`, 'not read while tls.svidMode is off', 'warning')] : [],
  )
}

const trustDomainsAreNames: RuleOf<typeof tlsSchema> = ({ svidTrustDomains = [] }) =>
  svidTrustDomains.flatMap((domain, index) =>
    domain === undefined || isTrustDomain(domain)
      ? []
      : [
          wrong(
            `tls.svidTrustDomains[${index}]`,
            `must be a SPIFFE trust domain such as plat.local, got ${quote(domain)}`,
          ),
        ],
  )

/** `tls` (docs/spec/gateway.md): the serving certificate, and client certificates that bind session tokens. */
export const tlsBlock = defineBlock({
  path: 'tls',
  feature: 'listeners',
  schema: tlsSchema,
  rules: [certificateWithKey, svidsNeedTrust, trustDomainsAreNames],
})
