import { glob, mapInSlices } from '@plat/core'
import type { InfraConfig } from '../config.ts'
import { DATA_BEARING_TYPES, PROTECTED_ADDRESSES, SENSITIVE_TYPES } from './lists.ts'
import { type Action, type Change, type Plan, withoutKeys } from './plan.ts'

/**
 * Risk of a plan: 0 no change, 1 additions, 2 changes in place, 3 destruction or changes of what others
 * depend on, 4 loss of data or changes of protected resources.
 */
export type Tier = 0 | 1 | 2 | 3 | 4

export type TierConfig = InfraConfig['tiers']

/** Reason for the tier of a change. */
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

/** One change above tier 0. */
export interface Finding {
  readonly address: string
  readonly type: string
  readonly actions: readonly Action[]
  readonly tier: Tier
  readonly causes: readonly Cause[]
}

export interface TierResult {
  readonly tier: Tier
  /** Number of changed resources. */
  readonly resources: number
  /** Every change above tier 0, by descending tier. */
  readonly findings: readonly Finding[]
  /** Types of all changed or read resources. */
  readonly types: ReadonlySet<string>
  /** Reasons for a higher tier of the plan than of its changes. */
  readonly causes: readonly string[]
}

type Matches = (text: string) => boolean

/** Matches any ending of an address. */
type MatchesEnding = (endings: readonly string[]) => boolean

/** Computes tiers. Order, nesting or number of changes never lower the tier below that of the most dangerous part. */
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

  async judge({ changes, invocations }: Plan): Promise<TierResult> {
    const found = await mapInSlices(changes, (change) => this.#find(change))
    const findings = found.filter(({ tier }) => tier > 0)
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
      // Sorted by address within a tier: the response does not depend on the order of the plan.
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
    // Reading it runs the named program on the machine that applies the plan.
    if (actions.has('read') && type === 'external') found('runs programs', 3)
    return { address: change.address, type, actions: [...actions], tier, causes }
  }

  /** Matches a resource in any module, under its previous address, and for any instance. */
  #protects({ address, previousAddress }: Change): boolean {
    const names = previousAddress === null ? [address] : [address, previousAddress]
    return names.some((name) => this.#isProtected(endingsOf(name)) || this.#isProtected(endingsOf(withoutKeys(name))))
  }
}

function isTouched({ actions, importing }: Change): boolean {
  return importing || actions.values().some((action) => action !== 'no-op')
}

/** Suffixes of an address that start at a module: `module.a.module.b.x.y`, `module.b.x.y`, `x.y`. */
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

/** `own` replaces `builtIn` if not empty; `added` extends them. */
function globsOf(own: readonly string[], builtIn: readonly string[], added: readonly string[]): readonly string[] {
  return [...(own.length > 0 ? own : builtIn), ...added]
}

function any(...lists: Parameters<typeof globsOf>): Matches {
  const globs = globsOf(...lists).map(glob)
  return (text) => globs.some((matches) => matches(text))
}

/**
 * One test for all endings of an address, the longest first. A `*` that matches in a shorter ending also matches in a longer one with the
 * same start, so each pattern tests one ending only: testing every ending is quadratic in the number of modules.
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
