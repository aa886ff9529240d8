import { type FlagTable, type FlagValues, type SettingsOf, settingsOf } from '@plat/config'
import { isTrustDomain } from '@plat/core'
import { peerFlags, peerProblems } from '@plat/http'
import { normalHtu } from '@plat/tokens'
import { bootstrapFlags, bootstrapSettingProblems } from './bootstrap/flags.ts'
import { keyFlags, keySettingProblems } from './keys/flags.ts'
import { proofFlags } from './proof/flags.ts'
import { stateFlags } from './state/flags.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A token needs whole seconds to live, and a year is more than any session has. */
const LEAST_TTL_MS = 1000
const LONGEST_TTL_MS = 365 * 24 * HOUR_MS

/** The broker's flags (docs/spec/broker-api.md, "Broker flags that shape the API"), those that this version reads. */
export const builtFlags = {
  listen: { type: 'string', default: ':8081', help: 'Address of the API.' },
  'trust-domain': { type: 'string', default: 'plat.local', help: 'Trust domain of the claim sub.' },
  issuer: { type: 'string', default: 'plat-identity', help: 'The claim iss.' },
  audience: { type: 'string', default: 'plat-gateway', help: 'Default of the claim aud.' },
  'default-ttl': {
    type: 'duration',
    default: 15 * MINUTE_MS,
    min: LEAST_TTL_MS,
    max: LONGEST_TTL_MS,
    help: 'Lifetime of a minted token when ttlSeconds is 0; never above -max-ttl.',
  },
  'max-ttl': {
    type: 'duration',
    default: HOUR_MS,
    min: LEAST_TTL_MS,
    max: LONGEST_TTL_MS,
    help: 'Longest lifetime of a minted token.',
  },
  'signing-key': {
    type: 'string',
    help: 'Signing key: a path or file URI, followed when it changes. Default /var/run/plat-identity/key.pem when it exists, else a temporary key, lost when the process exits.',
  },
  'previous-keys': {
    type: 'list',
    help: 'Retired keys that stay trusted: PEM files (public or private) separated by commas, or a folder of them.',
  },
  'public-url': {
    type: 'string',
    url: true,
    help: 'URL under which clients reach the API: the htu of DPoP proofs. Default: scheme and host of each request.',
  },
  'exchange-config': {
    type: 'string',
    help: 'Audiences that tokens may be exchanged for: a JSON file, followed when it changes. Without it none.',
  },
  'max-delegation-depth': {
    type: 'int',
    default: 5,
    min: 0,
    max: 15,
    help: 'Agents that a delegation chain passes through at most; 0 allows no delegation.',
  },
  'txn-token-keys': {
    type: 'list',
    help: 'Keys of transaction tokens that may be delegated: PEM files, JWKS files or URLs, separated by commas.',
  },
  'txn-token-audience': {
    type: 'string',
    help: 'Audience of those transaction tokens. Default: the trust domain.',
  },
  'require-proof': { type: 'bool', help: 'Refuse a mint that carries no proof of where the session runs.' },
  'attested-tiers': {
    type: 'list',
    help: 'Trust tiers whose tokens are minted only with a proof over a nonce of the key in dpopJkt, as the attestation service has it.',
  },
  'revocations-file': {
    type: 'string',
    help: 'Revoked tokens, sessions, agents, namespaces and users: the file that the gateway reads too. Unreadable: every token is refused.',
  },
  'audit-path': {
    type: 'string',
    help: "Ledger of what is issued and refused, of the same format as the gateway's. While it cannot be written nothing is issued.",
  },
  'shutdown-delay': {
    type: 'duration',
    default: 0,
    min: 0,
    help: 'How long /readyz fails after SIGTERM before connections end.',
  },
  version: { type: 'bool', help: 'Print the version and exit.' },
} as const satisfies FlagTable

/** The flags that are settings; those of state and proofs are read by the parts that they configure. */
export const settingFlags = { ...builtFlags, ...peerFlags, ...keyFlags, ...bootstrapFlags } as const satisfies FlagTable

/** Every flag of `plat-identity`. */
export const identityFlags = { ...settingFlags, ...stateFlags, ...proofFlags } as const satisfies FlagTable

export type IdentitySettings = SettingsOf<typeof settingFlags>

/** The documented defaults. */
export const defaultSettings: IdentitySettings = settingsOf(settingFlags)

/** Returns the problems of the flags, one line each, naming the flag. */
export function flagProblems(values: FlagValues<typeof identityFlags>): readonly string[] {
  return settingProblems(settingsOf(settingFlags, values))
}

/** Returns the problems of settings from any source. */
export function settingProblems(settings: IdentitySettings): readonly string[] {
  const problems: string[] = []
  const { trustDomain, issuer, audience, publicUrl } = settings
  if (!isTrustDomain(trustDomain))
    problems.push(`-trust-domain ${trustDomain}: must be a SPIFFE trust domain in lower case`)
  if (issuer === '') problems.push('-issuer: must not be empty')
  if (audience === '') problems.push('-audience: must not be empty')
  if (publicUrl !== '' && !isBaseUrl(publicUrl)) {
    problems.push(`-public-url ${publicUrl}: must be an http or https URL without query, fragment and user`)
  }
  problems.push(...peerProblems(settings))
  return [...problems, ...keySettingProblems(settings), ...bootstrapSettingProblems(settings)]
}

function isBaseUrl(text: string): boolean {
  return normalHtu(text) !== null && !/[?#]/.test(text)
}
