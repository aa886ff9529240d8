import { type Clock, type PoolObservers, reasonOf, watchedPool } from '@plat/core'
import type { Log } from '@plat/process'
import { fileJournals, type Journals } from '@plat/state'
import { Bindings } from '../../call/bindings/bindings.ts'
import { bindingJournal } from '../../call/bindings/events.ts'
import type { A2aConfig } from './config.ts'

export interface OwnersOptions {
  readonly config: { readonly a2a: A2aConfig; readonly auditPath: string }
  readonly journals: Journals
  readonly clock: Clock
  readonly log: Log
  readonly pools?: PoolObservers<'task_bindings'>
}

/** Owners of tasks and contexts, and the end of both them and their journal. */
export interface OpenedOwners {
  readonly owners: Bindings
  close(): Promise<void>
}

/** Reads the journal of owners. Rejects if it cannot be used. Without agents there are no tasks, and no journal. */
export async function openOwners({ config, journals, clock, log, pools }: OwnersOptions): Promise<OpenedOwners> {
  const isOn = config.a2a.routesFile !== ''
  const journal = await (isOn ? journals : fileJournals(clock)).open({
    ...bindingJournal(config, 'bindings'),
    ...(!isOn && { path: '' }),
  })
  const onFault = (error: unknown) => log.error({ error: reasonOf(error) }, 'owners of tasks could not be stored')
  const pool = watchedPool({ name: 'task_bindings', observer: pools?.of('task_bindings') })
  const owners = await Bindings.open({ journal, clock, onFault, pool })
  return {
    owners,
    async close() {
      owners.close()
      await journal.close()
    },
  }
}
