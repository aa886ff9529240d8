import type { PolicyEntry } from '@plat/resources/rendered'
import type { CompiledPolicy } from './compiled-policy.ts'
import type { CedarText } from './engines/cedar.ts'

/** A policy in dryRun. */
export interface Reported {
  readonly policy: string
  readonly governance: Governance
}

/** All policies of one agent, by kind. Filled during compilation, then immutable. */
export class Governance {
  readonly revision: string
  readonly rules: CompiledPolicy[] = []
  readonly cedars: CedarText[] = []
  /** Policies in `dryRun`. */
  readonly reported: Reported[] = []
  /** Whether there are only enforced rules. */
  isPlain = true

  constructor(revision: string) {
    this.revision = revision
  }

  /** Adds a policy by its parts; null: the policy lacks that part. */
  add({ mode, name }: Pick<PolicyEntry, 'mode' | 'name'>, rules: CompiledPolicy | null, cedar: CedarText | null): void {
    if (mode === 'dryRun') {
      const governance = new Governance(this.revision)
      governance.add({ mode: 'enforce', name }, rules, cedar)
      this.reported.push({ policy: name, governance })
    } else {
      if (rules !== null) this.rules.push(rules)
      if (cedar !== null) this.cedars.push(cedar)
    }
    this.isPlain = this.cedars.length === 0 && this.reported.length === 0
  }
}
