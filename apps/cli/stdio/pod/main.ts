import { type FlagTable, parseFlags } from '@plat/config'
import { reasonOf, systemClock, systemIds } from '@plat/core'
import { createLog, printUsage, refuseStart } from '@plat/process'
import { startBridge } from '../bridge.ts'
import { readPodConfig } from './config.ts'

const FLAGS = {
  folder: { type: 'string', default: '/etc/plat-stdio', help: 'Folder with the files that the operator renders.' },
  host: { type: 'string', default: '::', help: 'Address to listen on.' },
  port: { type: 'int', default: 8443, min: 0, max: 65_535, help: 'Port to listen on; 0: any.' },
} as const satisfies FlagTable

/**
 * Runs the bridge of one server in a pod until a signal. What the server writes to stderr, and what happens to its processes, is in the log on
 * stdout. Resolves with the exit status.
 */
export async function main(args: readonly string[]): Promise<number> {
  const flags = parseFlags(FLAGS, args, 'plat-stdio')
  if (!flags.ok) return printUsage(flags)
  const { folder, host, port } = flags.values
  const log = createLog({ service: 'plat-stdio' })
  const clock = systemClock
  const stopped = Promise.withResolvers<void>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stopped.resolve())
  try {
    const { server, access } = await readPodConfig(folder, process.env)
    const bridge = await startBridge({
      listener: { host, port, access },
      ...{ clock, ids: systemIds(clock), log },
      // Each event has its line in the log.
      report() {},
    })
    bridge.serve([server])
    log.info({ port: bridge.port, server: server.key }, 'listening')
    if (server.problem !== null) log.error({ problem: server.problem }, 'the server cannot be started')
    await stopped.promise
    await bridge.stop()
    return 0
  } catch (error) {
    return refuseStart([reasonOf(error)])
  }
}
