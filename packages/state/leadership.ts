/** Work that only one replica may do at a time. */
export interface Leadership {
  /**
   * Runs `work` whenever this replica leads `job`, until `signal` aborts, from when another replica may lead. `epoch` grows with each leader: writes
   * of a leader are refused once there is a later one. Leadership lasts until the work ends.
   */
  run(job: string, work: LedWork): void
}

export type LedWork = (epoch: number, signal: AbortSignal) => Promise<void>

/** Leadership for a single replica, which leads every job. `onLead` is called for each job; `close` aborts all work. */
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
