import { systemClock, systemIds } from '@plat/core'
import { createLog, silentLog } from '@plat/process'
import { type Bridge, startBridge } from './bridge.ts'
import { LineReader } from './child/lines.ts'
import { type BridgeConfig, type BridgeEvent, readBridgeConfig } from './protocol.ts'

/** Largest configuration, in bytes. */
const CONFIG_MAX_BYTES = 16 * 1024 * 1024

/**
 * Runs the bridge until its stdin ends: then the process that started it is gone, in whatever way, and every server must end. Each line on
 * stdin is a configuration, each line on stdout an event. Resolves with the exit status.
 */
export async function main(): Promise<number> {
  const ended = Promise.withResolvers<number>()
  const bridges: Promise<Bridge>[] = []
  const report = (event: BridgeEvent) => void process.stdout.write(`${JSON.stringify(event)}\n`)
  const configure = async (config: BridgeConfig) => {
    if (bridges.length === 0) bridges.push(open(config, report))
    for (const bridge of bridges) (await bridge).serve(config.servers)
  }
  const fail = (error: unknown) => {
    process.stderr.write(`plat-stdio: ${error instanceof Error ? error.message : String(error)}\n`)
    ended.resolve(1)
  }
  const lines = new LineReader(CONFIG_MAX_BYTES, {
    line(bytes) {
      const config = readBridgeConfig(bytes)
      if (config === null) fail('a line on stdin is not a configuration')
      else configure(config).catch(fail)
    },
    tooLong: () => fail('a configuration is too large'),
  })
  const finish = () => ended.resolve(0)
  // A terminal sends its signals to the whole group; the process that started the bridge decides when it ends.
  process
    .on('SIGINT', () => {})
    .on('SIGHUP', () => {})
    .on('SIGTERM', finish)
  process.stdout.on('error', finish)
  process.stdin
    .on('data', (chunk: Buffer) => lines.push(chunk))
    .on('end', finish)
    .on('error', finish)
  const status = await ended.promise
  for (const bridge of bridges) await (await bridge.catch(() => null))?.stop()
  return status
}

async function open({ socket, log: destination }: BridgeConfig, report: (event: BridgeEvent) => void): Promise<Bridge> {
  const log = destination === null ? silentLog : createLog({ service: 'stdio', destination })
  const bridge = await startBridge({
    listener: { socket },
    clock: systemClock,
    ids: systemIds(systemClock),
    log,
    report,
  })
  report({ event: 'ready' })
  return bridge
}
