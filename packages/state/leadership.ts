/** Work that only one replica may do at a time. */
export interface Leadership {
  /**
   * Does `work` whenever this replica leads `job`, until `signal` aborts: another replica leads from then on, or may. `epoch` grows with
   * each leader: what a leader writes is refused once there is a later one. The work lasts until then.
   */
  run(job: string, work: LedWork): void
}

export type LedWork = (epoch: number, signal: AbortSignal) => Promise<void>

/** The only replica leads everything. `onLead` is told of each job; `close` ends all work. */
export function soleLeadership(onLead: (job: string, leads: boolean) => void): Leadership & { close(): Promise<void> } {
  const stop = new AbortController()
  const works: Promise<void>[] = []
  return {
    run(job, work) {
      onLead(job, true)
      works.push(work(1, stop.signal))
    },
    async close() {
      stop.abort()
      await Promise.allSettled(works)
    },
  }
}
