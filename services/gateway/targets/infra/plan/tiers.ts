import { glob } from '@plat/core'
import { DATA_BEARING_TYPES, PROTECTED_ADDRESSES, SENSITIVE_TYPES } from './lists.ts'
import { type Action, type Change, type Plan, withoutKeys } from './plan.ts'

/**
 * How much can go wrong: 0 nothing changes, 1 something is added, 2 something is changed in place, 3 something is destroyed or what others
 * depend on is touched, 4 data is lost or what is protected is touched.
 */
export type Tier = 0 | 1 | 2 | 3 | 4

/** `infra.tiers` (docs/spec/gateway.md). An empty list is the built-in one. */
export interface TierConfig {
  readonly sensitiveTypes: readonly string[]
  readonly addSensitiveTypes: readonly string[]
  readonly dataBearingTypes: readonly string[]
  readonly addDataBearingTypes: readonly string[]
  readonly protectedAddresses: readonly string[]
  readonly addProtectedAddresses: readonly string[]
  readonly maxResources: number
}

/** Why a change has its tier. */
export type Cause =
  | 'creates'
  | 'imports'
  | 'updates'
  | 'destroys'
  | 'sensitive type'
  | 'data-bearing type'
  | 'protected address'
  | 'runs programs'
  | 'unknown action'

/** One change that counts. */
export interface Finding {
  readonly address: string
  readonly type: string
  readonly actions: readonly Action[]
  readonly tier: Tier
  readonly causes: readonly Cause[]
}

export interface TierResult {
  readonly tier: Tier
  /** Resources that would not be as they were. */
  readonly resources: number
  /** Every change above tier 0, the most dangerous first. */
  readonly findings: readonly Finding[]
  /** Types of everything that is changed or read. */
  readonly types: ReadonlySet<string>
  /** Why the plan as a whole has a higher tier than its changes. */
  readonly causes: readonly string[]
}

type Matches = (text: string) => boolean

/** Matches a text or any of its endings. */
type MatchesEnding = (endings: readonly string[]) => boolean

/** Judges plans. No order, nesting or number of changes makes one look more harmless than its most dangerous part. */
export class Tiers {
  readonly #isSensitive: Matches
  readonly #isDataBearing: Matches
  readonly #isProtected: MatchesEnding
  readonly #maxResources: number

  constructor(config: TierConfig) {
    this.#isSensitive = any(config.sensitiveTypes, SENSITIVE_TYPES, config.addSensitiveTypes)
    this.#isDataBearing = any(config.dataBearingTypes, DATA_BEARING_TYPES, config.addDataBearingTypes)
    const addresses = globsOf(config.protectedAddresses, PROTECTED_ADDRESSES, config.addProtectedAddresses)
    this.#isProtected = anyEnding(addresses)
    this.#maxResources = config.maxResources
  }

  judge({ changes, invocations }: Plan): TierResult {
    const findings = changes.map((change) => this.#find(change)).filter(({ tier }) => tier > 0)
    const resources = findings.filter(({ actions }) => !actions.every((action) => action === 'read')).length
    const causes = [
      ...(resources > this.#maxResources
        ? [`more than ${this.#maxResources} resources (infra.tiers.maxResources)`]
        : []),
      ...(invocations > 0 ? ['actions of providers run with it'] : []),
    ]
    const highest = findings.reduce<Tier>((most, { tier }) => higher(most, tier), 0)
    return {
      tier: causes.length > 0 ? higher(highest, 3) : highest,
      resources,
      types: new Set(changes.filter(isTouched).map(({ type }) => type)),
      // Of the same tier in the order of their addresses: the answer is the same however the plan is ordered.
      findings: findings.sort((a, b) => b.tier - a.tier || (a.address < b.address ? -1 : 1)),
      causes,
    }
  }

  #find(change: Change): Finding {
    const causes: Cause[] = []
    let tier: Tier = 0
    const found = (cause: Cause, at: Tier) => {
      causes.push(cause)
      tier = higher(tier, at)
    }
    const { actions, type } = change
    const destroys = actions.has('delete') || actions.has('forget')
    const changes = destroys || actions.has('create') || actions.has('update') || actions.has('unknown')
    if (actions.has('create')) found('creates', 1)
    if (change.importing) found('imports', 1)
    if (actions.has('update')) found('updates', 2)
    if (destroys) found('destroys', 3)
    if (actions.has('unknown')) found('unknown action', 4)
    if (changes && this.#isSensitive(type)) found('sensitive type', 3)
    if (changes && this.#isDataBearing(type)) found('data-bearing type', destroys ? 4 : tier)
    if ((changes || change.importing) && this.#protects(change)) found('protected address', 4)
    if (changes && change.provisioned) found('runs programs', 3)
    // Reading it runs whatever program it names, where the plan is applied.
    if (actions.has('read') && type === 'external') found('runs programs', 3)
    return { address: change.address, type, actions: [...actions], tier, causes }
  }

  /** A resource is the same in whatever module it stands, wherever it stood before, and whichever instance it is. */
  #protects({ address, previousAddress }: Change): boolean {
    const names = previousAddress === null ? [address] : [address, previousAddress]
    return names.some((name) => this.#isProtected(endingsOf(name)) || this.#isProtected(endingsOf(withoutKeys(name))))
  }
}

function isTouched({ actions, importing }: Change): boolean {
  return importing || actions.values().some((action) => action !== 'no-op')
}

/** An address from each of its modules on: `module.a.module.b.x.y`, `module.b.x.y`, `x.y`. */
function endingsOf(address: string): readonly string[] {
  const endings = [address]
  for (let rest = address; ; ) {
    const inner = /^module\.[^.[]+(?:\[(?:"(?:[^"\\]|\\.)*"|[^\]"]*)\])?\./.exec(rest)
    if (inner === null) return endings
    rest = rest.slice(inner[0].length)
    endings.push(rest)
  }
}

function higher(one: Tier, other: Tier): Tier {
  return one > other ? one : other
}

/** `own` in place of `builtIn` where it says anything, and `added` beside them. */
function globsOf(own: readonly string[], builtIn: readonly string[], added: readonly string[]): readonly string[] {
  return [...(own.length > 0 ? own : builtIn), ...added]
}

function any(...lists: Parameters<typeof globsOf>): Matches {
  const globs = globsOf(...lists).map(glob)
  return (text) => globs.some((matches) => matches(text))
}

/**
 * One test for all endings of an address, the longest first. What a `*` covers in a shorter ending it also covers in a longer one that
 * begins alike, so each pattern looks at one ending only: a test of every ending is quadratic in the number of modules.
 */
function anyEnding(patterns: readonly string[]): MatchesEnding {
  const tests = patterns.map((pattern) => {
    const star = pattern.indexOf('*')
    if (star === -1) return (endings: readonly string[]) => endings.includes(pattern)
    const [start, matches] = [pattern.slice(0, star), glob(pattern)]
    return (endings: readonly string[]) => {
      const longest = endings.find((ending) => ending.startsWith(start))
      return longest !== undefined && matches(longest)
    }
  })
  return (endings) => tests.some((test) => test(endings))
}
