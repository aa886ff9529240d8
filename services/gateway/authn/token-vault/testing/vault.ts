import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemIds, TestClock } from '@plat/core'
import type { Rec } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { createMemoryJournal, type Leases, memoryLeases } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import type { Identity } from '../../../call/index.ts'
import { testIdentity } from '../../../call/testing/identity.ts'
import type { OwnerRules } from '../owner.ts'
import { type Refusal, refusal } from '../providers/client.ts'
import type { Tokens, VaultEvent } from '../store/account.ts'
import { Accounts } from '../store/accounts.ts'
import { openEnvelope } from '../store/envelope.ts'
import { connectURL, Vault, type VaultProvider } from '../vault.ts'

/** Minute of tokens in these tests, in milliseconds. */
export const MINUTE_MS = 60_000

export const ada: Identity = {
  ...testIdentity,
  tenant: '',
  namespace: 'default',
  user: 'ada',
  verified: 'requester',
  issuer: 'broker',
}

export const openRules: OwnerRules = {
  realm: 'https://login.example',
  trustedIssuers: new Set(['https://customer.example', 'https://other.example']),
  externalUserIssuers: new Set(['https://customer.example']),
  isolateExternalIssuers: false,
  allowUnverifiedPrincipal: false,
}

/** A provider with scripted responses. */
export class ScriptedProvider implements VaultProvider {
  readonly name = 'hub'
  readonly title = 'Hub'
  renewals = 0
  readonly revoked: string[] = []
  servers = ['default/notes']
  namespaces = ['default']
  /** The next renewal result; null: tokens that are valid for another hour. */
  answer: Promise<Tokens | Refusal> | Refusal | null = null
  readonly #clock: TestClock

  constructor(clock: TestClock) {
    this.#clock = clock
  }

  serves(server: string): boolean {
    return this.servers.includes(server)
  }

  isFor(namespace: string): boolean {
    return this.namespaces.includes(namespace)
  }

  renews({ refreshToken }: Tokens): boolean {
    return refreshToken !== null
  }

  async renew(): Promise<Tokens | Refusal> {
    this.renewals++
    return (
      this.answer ??
      tokensOf(this.#clock, { accessToken: `renewed-${this.renewals}`, refreshToken: `r-${this.renewals}` })
    )
  }

  async revoke({ accessToken }: Tokens): Promise<null> {
    this.revoked.push(accessToken)
    return null
  }
}

/** Tokens that are valid for an hour. */
export function tokensOf(clock: TestClock, own: Partial<Tokens> = {}): Tokens {
  const obtainedAt = clock.now()
  return {
    accessToken: 'first',
    refreshToken: 'r-0',
    expiresAt: obtainedAt + 60 * MINUTE_MS,
    obtainedAt,
    scopes: ['read'],
    login: null,
    ...own,
  }
}

/** A vault on an in-memory journal with a test clock. `shared`: leases that other replicas have as well. */
export async function scriptedVault(rules: Partial<OwnerRules> = {}, shared?: Leases) {
  const clock = new TestClock()
  const ids = systemIds(clock)
  const dir = tempFolder()
  const keyURI = join(dir, 'vault.key')
  await writeFile(keyURI, randomBytes(32).toString('base64'))
  const journal = createMemoryJournal<VaultEvent>(() => clock.now())
  const faults: unknown[] = []
  const envelope = await openEnvelope({ keyURI, retiredKeyURIs: [] }, ids)
  const accounts = new Accounts({ journal, envelope, onFault: (fault) => faults.push(fault) })
  await accounts.open()
  const provider = new ScriptedProvider(clock)
  const leases = shared ?? memoryLeases(clock)
  const records: Rec[] = []
  const vault = new Vault({
    accounts,
    providers: new Map([['hub', provider]]),
    rules: { ...openRules, ...rules },
    connectURL: (name, tenant) => connectURL('https://gateway.example/v1/connect', name, tenant),
    leases,
    record: (_, record) => records.push(record),
    clock,
    log: silentLog,
  })
  const owner = { tenant: '', realm: openRules.realm, user: 'ada', provider: 'hub' }
  return { clock, journal, accounts, leases, provider, vault, records, owner, faults }
}

export const gone = refusal('invalid_grant', 'the provider answered invalid_grant')
export const silent = refusal(null, 'the provider gave no answer (timeout)')
