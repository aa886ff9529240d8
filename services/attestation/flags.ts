import type { FlagTable, SettingsOf } from '@plat/config'
import { peerFlags, peerProblems } from '@plat/http'
import { normalHtu } from '@plat/tokens'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** Every flag of `plat-attestation`. */
export const attestationFlags = {
  ...peerFlags,
  listen: { type: 'string', default: ':8082', help: 'Address of the API.' },
  'broker-url': {
    type: 'string',
    default: 'http://plat-identity.plat-system.svc:8081',
    url: true,
    help: 'URL of the identity broker, which verifies evidence and mints tokens.',
  },
  'broker-ca-file': {
    type: 'string',
    help: 'Authorities that the broker is believed by, PEM; read for each request. Default: those of the system.',
  },
  'public-url': {
    type: 'string',
    url: true,
    help: 'URL under which workloads reach the API: the htu of DPoP proofs. Default: scheme and host of each request.',
  },
  'token-ttl': {
    type: 'duration',
    default: 5 * MINUTE_MS,
    min: 10_000,
    max: HOUR_MS,
    help: 'Lifetime of a released token where the release names none: how long a platform is believed without fresh evidence.',
  },
  'release-ttl': {
    type: 'duration',
    default: 15 * MINUTE_MS,
    min: MINUTE_MS,
    max: 24 * HOUR_MS,
    help: 'How long a release waits for its workload.',
  },
  'state-path': {
    type: 'string',
    help: 'Journal of releases. Without it they last as long as the process, and attested sessions with them.',
  },
  'audit-path': {
    type: 'string',
    help: "Ledger of what is released and refused, of the same format as the gateway's. While it cannot be written nothing is released.",
  },
  'revoke-url': {
    type: 'string',
    url: true,
    help: 'URL of the admin API of a gateway that revokes sessions whose renewal is refused, with the token in PLAT_ADMIN_TOKEN.',
  },
  'tls-cert': {
    type: 'string',
    help: 'Certificate chain in PEM, leaf first: serves the API over TLS. Followed when it changes. Needs -tls-key.',
  },
  'tls-key': { type: 'string', help: 'Private key of -tls-cert in PEM.' },
  'shutdown-delay': {
    type: 'duration',
    default: 0,
    min: 0,
    help: 'How long /readyz fails after SIGTERM before connections end.',
  },
  version: { type: 'bool', help: 'Print the version and exit.' },
} as const satisfies FlagTable

/** The settings of the service. Paths and URLs may be empty. */
export type AttestationSettings = SettingsOf<typeof attestationFlags>

/** Returns the problems of the settings, one line each, naming the flag. */
export function settingProblems(settings: AttestationSettings): readonly string[] {
  const { brokerUrl, publicUrl, revokeUrl, tlsCert, tlsKey } = settings
  const problems: string[] = []
  const urls = { 'broker-url': brokerUrl, 'public-url': publicUrl, 'revoke-url': revokeUrl }
  for (const [flag, url] of Object.entries(urls)) {
    if (url === '' ? flag === 'broker-url' : !isBaseUrl(url)) {
      problems.push(`-${flag} ${url}: must be an http or https URL without query, fragment and user`)
    }
  }
  problems.push(...peerProblems(settings))
  if (tlsCert !== '' && tlsKey === '') problems.push('-tls-cert: needs -tls-key')
  if (tlsKey !== '' && tlsCert === '') problems.push('-tls-key: needs -tls-cert')
  return problems
}

function isBaseUrl(text: string): boolean {
  return normalHtu(text) !== null && !/[?#]/.test(text)
}
