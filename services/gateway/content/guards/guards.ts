import type { Denial, Identity, Target } from '../../call/index.ts'
import { callerOf, deny } from '../../call/index.ts'
import type { GuardTarget } from './config.ts'
import type { Guard } from './guard.ts'
import type { GuardMetrics } from './metrics.ts'

/** Parts of a call that guards need. */
export interface GuardedCall {
  readonly id: string
  readonly facts: { readonly identity: Identity; readonly target: Target }
}

export interface GuardsOptions {
  readonly guards: readonly Guard[]
  /** Adds labels to the session. Returns null when durable. */
  readonly taint: (identity: Identity, labels: readonly string[]) => null | Denial | Promise<null | Denial>
  readonly labelsOf: (identity: Identity) => readonly string[]
  /** Called when a text passes unclassified, for the audit record. */
  readonly onUnread: (call: GuardedCall, guard: string, target: GuardTarget) => void
  readonly metrics: Pick<GuardMetrics, 'checked' | 'blocked'>
}

const WORDS: Readonly<Record<GuardTarget, string>> = {
  toolResult: 'the answer',
  toolArgs: 'the arguments',
  llmPrompt: 'the prompt',
}

const NOTHING: readonly string[] = []

/** All configured guards. */
export class Guards {
  readonly #options: GuardsOptions
  /** Whether there are none, so that calls skip this. */
  readonly none: boolean

  constructor(options: GuardsOptions) {
    this.#options = options
    this.none = options.guards.length === 0
  }

  /** Returns the guards for texts of this kind in this call. */
  of({ facts: { identity, target } }: GuardedCall, what: GuardTarget): readonly Guard[] {
    return this.#options.guards.filter((guard) => guard.reads(what) && guard.guards(identity, target))
  }

  /** Runs the guards concurrently. Returns the labels added to the session, durably, or a denial. */
  async judge(
    call: GuardedCall,
    guards: readonly Guard[],
    { text, target }: { readonly text: string; readonly target: GuardTarget },
  ): Promise<readonly string[] | Denial> {
    const caller = callerOf(call.facts.identity)
    const judged = await Promise.all(guards.map((guard) => guard.judge(text, target, caller)))
    let no: Denial | null = null
    const labels = new Set<string>()
    for (const [at, { config }] of guards.entries()) {
      const judgement = judged[at] ?? 'unavailable'
      this.#options.metrics.checked(config.name, target, judgement === 'busy' ? 'unavailable' : judgement)
      if (judgement === 'flagged' && config.action === 'block') no = this.#block(config.name, target)
      else if (judgement === 'flagged') labels.add(config.label)
      else if (judgement === 'unavailable' && config.failOpen) this.#options.onUnread(call, config.name, target)
      else if (judgement === 'busy')
        no ??= deny('guard_unavailable', `guard ${config.name} reads too many texts at once`)
      else if (judgement === 'unavailable')
        no ??= deny('guard_unavailable', `guard ${config.name} cannot read ${WORDS[target]} now`)
    }
    return no ?? this.#taint(call.facts.identity, [...labels])
  }

  #block(guard: string, target: GuardTarget): Denial {
    this.#options.metrics.blocked(guard, target)
    return deny('guard_blocked', `guard ${guard} classifies ${WORDS[target]} as an attack`)
  }

  async #taint(identity: Identity, labels: readonly string[]): Promise<readonly string[] | Denial> {
    if (labels.length === 0) return NOTHING
    const before = this.#options.labelsOf(identity)
    const no = await this.#options.taint(identity, labels)
    return no ?? labels.filter((label) => !before.includes(label))
  }
}
