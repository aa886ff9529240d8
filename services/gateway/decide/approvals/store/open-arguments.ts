import { type Clock, type PoolObservers, reasonOf } from '@plat/core'
import type { Log } from '@plat/process'
import type { Journals } from '@plat/state'
import type { Approval, Question } from './events.ts'
import { decodeArgumentsEvent, WholeArguments } from './whole-arguments.ts'

/** Interval at which arguments of decided approvals are removed, in milliseconds. */
const SWEEP_EVERY_MS = 10_000

export interface ArgumentsParts {
  readonly config: { readonly approvalStorePath: string }
  readonly journals: Journals
  readonly pools?: PoolObservers<'approval_arguments'>
  readonly clock: Clock
  readonly log: Log
}

/** Opens the store of whole arguments, in a journal beside that of approvals. Rejects if it cannot be read. */
export async function openArguments({ config, journals, pools, clock, log }: ArgumentsParts) {
  const path = config.approvalStorePath === '' ? '' : `${config.approvalStorePath}.arguments.jsonl`
  const journal = await journals.open({ name: 'approval-arguments', path, decode: decodeArgumentsEvent })
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
