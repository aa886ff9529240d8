import type { Journals } from '@plat/state'

/** Journals without which most calls are denied; the others deny only what they are for. */
const NEEDED_JOURNALS: ReadonlySet<string> = new Set(['approvals', 'taints', 'bindings', 'revocations'])

/** Whether most calls would be denied now, so that a balancer sends them to another replica. */
export class Readiness {
  readonly #checks: { readonly name: string; readonly isWell: () => boolean }[] = []

  add(name: string, isWell: () => boolean): void {
    this.#checks.push({ name, isWell })
  }

  /** Names of what is not well. */
  reasons(): readonly string[] {
    return this.#checks.filter(({ isWell }) => !isWell()).map(({ name }) => name)
  }

  /** The same journals; those that calls need are checked from now on. */
  watched(journals: Journals): Journals {
    return {
      shared: journals.shared,
      catchUp: journals.catchUp,
      open: async (spec) => {
        const journal = await journals.open(spec)
        if (NEEDED_JOURNALS.has(spec.name)) this.add(`journal ${spec.name}`, () => journal.health === 'ok')
        return journal
      },
    }
  }
}
