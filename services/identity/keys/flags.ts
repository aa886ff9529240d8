import type { FlagTable, SettingsOf } from '@plat/config'
import type { AlgorithmName } from '@plat/keys'
import { CLASSICAL_AND_ML_DSA } from '@plat/tokens'

const SIGN_ALGS: readonly AlgorithmName[] = ['EdDSA', 'ML-DSA-44', 'ML-DSA-65', 'ML-DSA-87']
const LONGEST_RELOAD_MS = 3_600_000

/** The flags about keys: which algorithm, whose tenants, what clouds are shown, and TLS (docs/spec/broker-api.md). */
export const keyFlags = {
  'sign-alg': {
    type: 'string',
    default: 'EdDSA',
    oneOf: SIGN_ALGS,
    help: 'Signing algorithm of session tokens; every signing key must be for it.',
  },
  'tenants-file': {
    type: 'string',
    help: 'Tenants and their namespaces: a JSON file, followed when it changes. Without it one key signs for all namespaces.',
  },
  'tenant-keys-dir': {
    type: 'string',
    default: '/var/run/plat/tenant-keys',
    help: 'Folder of the keys of tenants, <name>.pem each. A tenant without its key gets no token.',
  },
  'tenant-reload': {
    type: 'duration',
    default: 10_000,
    min: 100,
    max: LONGEST_RELOAD_MS,
    help: 'How often the tenants and their keys are looked at.',
  },
  'federation-key': {
    type: 'string',
    help: 'Key of the assertions that clouds take: P-256 (ES256) or RSA (RS256), a path or file URI. Turns OIDC discovery on.',
  },
  'federation-issuer': {
    type: 'string',
    help: 'Issuer of those assertions: the https URL under which clouds find the discovery document. Default: -issuer.',
  },
  'tls-cert': {
    type: 'string',
    help: 'Certificate chain in PEM, leaf first: serves the API over TLS. Followed when it changes. Needs -tls-key.',
  },
  'tls-key': { type: 'string', help: 'Private key of -tls-cert in PEM.' },
} as const satisfies FlagTable

export type KeySettings = SettingsOf<typeof keyFlags>

/** Returns the problems of the key settings, one line each, naming the flag. */
export function keySettingProblems(settings: KeySettings & { readonly issuer: string }): readonly string[] {
  const problems: string[] = []
  const { signAlg, federationKey, federationIssuer, issuer, tlsCert, tlsKey } = settings
  if (!CLASSICAL_AND_ML_DSA.has(signAlg)) problems.push(`-sign-alg ${signAlg}: must be one of ${SIGN_ALGS.join(', ')}`)
  if (federationKey === '' && federationIssuer !== '') problems.push('-federation-issuer: needs -federation-key')
  const [flag, named] = federationIssuer === '' ? ['-issuer', issuer] : ['-federation-issuer', federationIssuer]
  if (federationKey !== '' && !isIssuerUrl(named)) {
    problems.push(
      `${flag} ${named}: with -federation-key the issuer must be an https URL without query and fragment (http on loopback alone)`,
    )
  }
  if (tlsCert !== '' && tlsKey === '') problems.push('-tls-cert: needs -tls-key')
  if (tlsKey !== '' && tlsCert === '') problems.push('-tls-key: needs -tls-cert')
  return problems
}

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** OpenID Connect Discovery section 3: an https URL without query and fragment. Nothing on loopback needs TLS. */
function isIssuerUrl(text: string): boolean {
  if (!URL.canParse(text) || /[?#\s]/.test(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}
