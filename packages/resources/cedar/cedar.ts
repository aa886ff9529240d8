/** Cedar policies, evaluated by the official engine. It is several megabytes of WebAssembly, so it is loaded only when a policy uses Cedar. */
import type { DetailedError, PolicyJson, Response } from '@cedar-policy/cedar-wasm/nodejs'
import { forLists } from './lists.ts'
import type { CedarValue } from './values.ts'

export { type CedarValue, cedarCost, cedarFromJson } from './values.ts'

/** A Cedar authorization request. Entities have no attributes and no parents: all facts are in the context. */
export interface CedarInput {
  /** Ids of an `Agent`, an `Action` and a `Tool`. */
  readonly principal: string
  readonly action: string
  readonly resource: string
  readonly context: Readonly<Record<string, CedarValue>>
}

/** Result of one policy text: `none` when no policy applies. */
export interface CedarResult {
  readonly action: 'allow' | 'deny' | 'none'
  /** The deciding policy: its `@id`, else its place (`line 3:1`); null without one. */
  readonly policy: string | null
  /** Whether a policy could not be evaluated, which counts as forbid. */
  readonly failed: boolean
}

/** A compiled text. */
export interface CedarPolicies {
  /** Decides on one call. Policies that fail count as the stricter result: a `permit` does not permit, a `forbid` forbids. */
  decide(question: CedarInput): CedarResult
  /**
   * Decides on a list entry, whose arguments are unknown: a `permit` applies if some arguments could satisfy it, a `forbid` with conditions on
   * arguments does not.
   */
  decideEntry(question: CedarInput): CedarResult
}

/** The engine. */
export interface Cedar {
  /** Compiles a text; returns one line that says what is wrong. */
  compile(text: string): CedarPolicies | string
}

let loading: Promise<Cedar | null> | null = null

/** Loads the engine once; null when it cannot be loaded here. */
export function loadCedar(): Promise<Cedar | null> {
  loading ??= import('@cedar-policy/cedar-wasm/nodejs').then(
    (wasm) => new WasmCedar(wasm),
    () => null,
  )
  return loading
}

/** Returns whether the engine is installed, without loading it. */
export function cedarInstalled(): boolean {
  try {
    import.meta.resolve('@cedar-policy/cedar-wasm/nodejs')
    return true
  } catch {
    return false
  }
}

type Wasm = typeof import('@cedar-policy/cedar-wasm/nodejs')

interface Named {
  readonly id: string
  /** The policy as evaluated: its text, unless parts had to be removed. A literal may be larger than JSON can represent. */
  readonly source: string | PolicyJson
  readonly json: PolicyJson
}

class WasmCedar implements Cedar {
  readonly #wasm: Wasm
  readonly #sets: ParsedSets

  constructor(wasm: Wasm) {
    this.#wasm = wasm
    this.#sets = new ParsedSets(wasm)
  }

  compile(text: string): CedarPolicies | string {
    const parts = this.#wasm.policySetTextToParts(text)
    if (parts.type === 'failure') return engineMessage(parts.errors, text)
    if (parts.policy_templates.length > 0) return 'holds a template: only whole policies can be judged'
    if (parts.policies.length === 0) return 'holds no policy'
    const policies: Named[] = []
    for (const part of inOrder(parts.policies, text)) {
      const parsed = this.#wasm.policyToJson(part.text)
      if (parsed.type === 'failure') return engineMessage(parsed.errors, part.text)
      const id = parsed.json.annotations?.id ?? part.at
      if (policies.some((other) => other.id === id)) return `two policies have the @id "${id}"`
      policies.push({ id, source: part.text, json: parsed.json })
    }
    const calls = this.#sets.parse(policies)
    if (calls.fault !== null) return engineMessage(calls.fault, text)
    const entries = this.#sets.parse(forLists(policies))
    if (entries.fault !== null) return engineMessage(entries.fault, text)
    const forbidding = new Set(policies.filter(({ json }) => json.effect === 'forbid').map(({ id }) => id))
    return new WasmPolicies(this.#wasm, { calls, entries, forbidding })
  }
}

interface Compiled {
  readonly calls: ParsedSet
  readonly entries: ParsedSet
  /** Ids of the policies that forbid. */
  readonly forbidding: ReadonlySet<string>
}

class WasmPolicies implements CedarPolicies {
  readonly #wasm: Wasm
  readonly #compiled: Compiled

  constructor(wasm: Wasm, compiled: Compiled) {
    this.#wasm = wasm
    this.#compiled = compiled
  }

  decide(question: CedarInput): CedarResult {
    return this.#ask(this.#compiled.calls, question)
  }

  decideEntry(question: CedarInput): CedarResult {
    return this.#ask(this.#compiled.entries, question)
  }

  #ask({ name }: ParsedSet, { principal, action, resource, context }: CedarInput): CedarResult {
    const answer = this.#wasm.statefulIsAuthorized({
      principal: { type: 'Agent', id: principal },
      action: { type: 'Action', id: action },
      resource: { type: 'Tool', id: resource },
      context,
      preparsedPolicySetId: name,
      entities: [],
    })
    if (answer.type === 'failure') return { action: 'deny', policy: null, failed: true }
    return this.#resultOf(answer.response)
  }

  /** Cedar omits policies that it cannot evaluate; an omitted `forbid` must not let a call pass. */
  #resultOf({ decision, diagnostics: { reason, errors } }: Response): CedarResult {
    const failed = errors.find(({ policyId }) => this.#compiled.forbidding.has(policyId))
    if (decision === 'allow' && failed !== undefined) return { action: 'deny', policy: failed.policyId, failed: true }
    const policy = reason.toSorted()[0] ?? null
    if (decision === 'allow') return { action: 'allow', policy, failed: false }
    if (policy !== null) return { action: 'deny', policy, failed: false }
    if (failed !== undefined) return { action: 'deny', policy: failed.policyId, failed: true }
    return { action: 'none', policy: null, failed: false }
  }
}

/** A set parsed by the engine, under its name there. */
interface ParsedSet {
  readonly name: string
  /** Null when it is usable. */
  readonly fault: readonly DetailedError[] | null
}

/** The engine never frees a parsed set: names of unused sets are reused. */
class ParsedSets {
  readonly #wasm: Wasm
  readonly #free: string[] = []
  readonly #collected = new FinalizationRegistry<string>((name) => this.#release(name))
  #made = 0

  constructor(wasm: Wasm) {
    this.#wasm = wasm
  }

  parse(policies: readonly Named[]): ParsedSet {
    const name = this.#free.pop() ?? `set ${this.#made++}`
    const staticPolicies = Object.fromEntries(policies.map(({ id, source }) => [id, source]))
    const parsed = this.#wasm.preparsePolicySet(name, { staticPolicies })
    const set: ParsedSet = { name, fault: parsed.type === 'failure' ? parsed.errors : null }
    this.#collected.register(set, name)
    return set
  }

  #release(name: string): void {
    this.#wasm.preparsePolicySet(name, { staticPolicies: {} })
    this.#free.push(name)
  }
}

/** Returns the policies of a text in order, with their offsets. */
function inOrder(parts: readonly string[], text: string): { text: string; at: string }[] {
  const places = parts.map((part) => ({ text: part, offset: text.indexOf(part) }))
  // Two policies with the same text have different offsets.
  const used = new Set<number>()
  for (const place of places) {
    while (used.has(place.offset)) place.offset = text.indexOf(place.text, place.offset + 1)
    used.add(place.offset)
  }
  return places
    .toSorted((a, b) => a.offset - b.offset)
    .map((place) => ({ text: place.text, at: lineOf(text, place.offset) }))
}

function lineOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n')
  return `line ${before.length}:${(before.at(-1) ?? '').length + 1}`
}

/** Returns the engine's error on one line. Its offsets count bytes. */
function engineMessage([error]: readonly DetailedError[], text: string): string {
  const place = error?.sourceLocations?.[0]
  const start = place === undefined ? null : Buffer.from(text).subarray(0, place.start).toString('utf8').length
  const at = start === null ? '' : ` at ${lineOf(text, start)}`
  const expected = place?.label ? ` (${place.label})` : ''
  return `not Cedar${at}: ${error?.message ?? 'unreadable'}${expected}`.replace(/\s+/g, ' ')
}
