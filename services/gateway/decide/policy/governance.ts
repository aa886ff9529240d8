import type { PolicyEntry } from '@plat/resources/rendered'
import type { CompiledPolicy } from './compile.ts'
import type { CedarText } from './engines/cedar.ts'

/** A policy that is only tried out. */
export interface Reported {
  readonly policy: string
  readonly governance: Governance
}

/** All policies of one agent, by how they count. Filled while policies are compiled, and never changed afterwards. */
export class Governance {
  readonly revision: string
  /** Policies whose rules decide. */
  readonly rules: CompiledPolicy[] = []
  /** Cedar texts that decide. */
  readonly cedars: CedarText[] = []
  /** Policies in `dryRun`. */
  readonly reported: Reported[] = []
  /** Nothing but rules has to be asked. */
  isPlain = true

  constructor(revision: string) {
    this.revision = revision
  }

  /** Adds a policy by what speaks in it; null: nothing of that kind does. */
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
