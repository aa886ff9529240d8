import type { FlagTable, FlagValues } from '@plat/config'
import { isTrustDomain } from '@plat/core'
import { peerFlags, peerProblems } from '@plat/http'
import { normalHtu } from '@plat/tokens'
import {
  type BootstrapSettings,
  bootstrapFlags,
  bootstrapSettingProblems,
  bootstrapSettingsOf,
  defaultBootstrapSettings,
} from './bootstrap/flags.ts'
import { defaultKeySettings, type KeySettings, keyFlags, keySettingProblems, keySettingsOf } from './keys/flags.ts'
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

/** Every flag of `plat-identity`. */
export const identityFlags = {
  ...builtFlags,
  ...peerFlags,
  ...keyFlags,
  ...stateFlags,
  ...bootstrapFlags,
  ...proofFlags,
} as const satisfies FlagTable

/** Settings of the broker, with durations in milliseconds. */
export interface IdentitySettings extends KeySettings, BootstrapSettings {
  readonly listen: string
  readonly trustDomain: string
  readonly issuer: string
  readonly audience: string
  readonly defaultTtlMs: number
  readonly maxTtlMs: number
  /** Empty: the default path when it exists, otherwise an ephemeral key. */
  readonly signingKey: string
  readonly previousKeys: readonly string[]
  readonly shutdownDelayMs: number
  readonly maxConnectionsPerPeer: number
  /** Address ranges. */
  readonly trustedProxies: readonly string[]
  /** Without a slash at the end. Empty: scheme and host of each request. */
  readonly publicUrl: string
  /** Path. Empty: no audience. */
  readonly exchangeConfig: string
  readonly maxDelegationDepth: number
  /** Paths and URLs. Empty: transaction tokens are not taken. */
  readonly txnTokenKeys: readonly string[]
  /** Empty: the trust domain. */
  readonly txnTokenAudience: string
  readonly requireProof: boolean
  /** Names of TrustTiers. Empty: none is minted with attestation alone. */
  readonly attestedTiers: readonly string[]
  /** Path. Empty: nothing is revoked here. */
  readonly revocationsFile: string
  /** Path. Empty: issuance is recorded in the log alone. */
  readonly auditPath: string
}

/** The documented defaults. */
export const defaultSettings: IdentitySettings = {
  ...defaultKeySettings,
  ...defaultBootstrapSettings,
  listen: builtFlags.listen.default,
  trustDomain: builtFlags['trust-domain'].default,
  issuer: builtFlags.issuer.default,
  audience: builtFlags.audience.default,
  defaultTtlMs: builtFlags['default-ttl'].default,
  maxTtlMs: builtFlags['max-ttl'].default,
  signingKey: '',
  previousKeys: [],
  shutdownDelayMs: builtFlags['shutdown-delay'].default,
  maxConnectionsPerPeer: peerFlags['max-connections-per-peer'].default,
  trustedProxies: [],
  publicUrl: '',
  exchangeConfig: '',
  maxDelegationDepth: builtFlags['max-delegation-depth'].default,
  txnTokenKeys: [],
  txnTokenAudience: '',
  requireProof: false,
  attestedTiers: [],
  revocationsFile: '',
  auditPath: '',
}

export function settingsOf(
  values: FlagValues<typeof builtFlags & typeof peerFlags & typeof keyFlags & typeof bootstrapFlags>,
): IdentitySettings {
  return {
    ...keySettingsOf(values),
    ...bootstrapSettingsOf(values),
    listen: values.listen,
    trustDomain: values['trust-domain'],
    issuer: values.issuer,
    audience: values.audience,
    defaultTtlMs: values['default-ttl'],
    maxTtlMs: values['max-ttl'],
    signingKey: values['signing-key'],
    previousKeys: values['previous-keys'],
    shutdownDelayMs: values['shutdown-delay'],
    maxConnectionsPerPeer: values['max-connections-per-peer'],
    trustedProxies: values['trusted-proxies'],
    publicUrl: values['public-url'].replace(/\/$/, ''),
    exchangeConfig: values['exchange-config'],
    maxDelegationDepth: values['max-delegation-depth'],
    txnTokenKeys: values['txn-token-keys'],
    txnTokenAudience: values['txn-token-audience'],
    requireProof: values['require-proof'],
    attestedTiers: values['attested-tiers'],
    revocationsFile: values['revocations-file'],
    auditPath: values['audit-path'],
  }
}

/** Returns the problems of the flags, one line each, naming the flag. */
export function flagProblems(values: FlagValues<typeof identityFlags>): readonly string[] {
  return settingProblems(settingsOf(values))
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
