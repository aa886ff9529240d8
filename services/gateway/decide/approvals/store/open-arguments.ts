import { type Clock, type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { JournalSpec, Journals } from '@plat/state'
import type { Approval, Question, StoredBeside } from './events.ts'
import { type ArgumentsEvent, decodeArgumentsEvent, WholeArguments } from './whole-arguments.ts'

/** Interval at which arguments of decided approvals are removed, in milliseconds. */
const SWEEP_EVERY_MS = 10_000

export interface ArgumentsParts {
  readonly config: StoredBeside
  readonly journals: Journals
  readonly pools?: PoolObservers<'approval_arguments'>
  readonly clock: Clock
  readonly log: Log
}

/** The journal of whole arguments, beside that of approvals. */
export function argumentsJournal({ approvalStorePath: path }: StoredBeside): JournalSpec<ArgumentsEvent> {
  const beside = path === '' ? '' : `${path}.arguments.jsonl`
  return { name: 'approval-arguments', path: beside, decode: decodeArgumentsEvent }
}

/** Opens the store of whole arguments, in a journal beside that of approvals. Rejects if it cannot be read. */
export async function openArguments({ config, journals, pools, clock, log }: ArgumentsParts) {
  const journal = await journals.open(argumentsJournal(config))
  const onFault = (error: unknown) =>
    log.error({ error: reasonOf(error) }, 'the whole arguments of an approval could not be stored')
  const stored = await WholeArguments.open({ journal, observer: pools?.of('approval_arguments'), onFault })
  let stopSweep = () => {}
  return {
    stored,
    keep: (question: Question, text: string) => void stored.keep(question, text).catch(onFault),
    /** Removes arguments of approvals that are decided, from now on. */
    sweepWith(approvals: { get(id: string): Approval | null }) {
      const isPending = (id: string) => {
        const approval = approvals.get(id)
        return approval === null ? null : approval.state === 'pending'
      }
      stopSweep = clock.every(SWEEP_EVERY_MS, () => void stored.sweep(isPending, clock.now()))
    },
    async close() {
      stopSweep()
      stored.close()
      await journal.close()
    },
  }
}
