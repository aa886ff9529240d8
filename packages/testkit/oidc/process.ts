import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** A provider in a separate process. */
export interface ProviderProcess {
  /** Its issuer, `http://127.0.0.1:<port>`. */
  readonly url: string
  /** Returns the lines of its output since the start. */
  lines(): readonly string[]
  /** Writes a line to its standard input. */
  send(line: string): void
  close(): Promise<void>
}

/** Starts a file of `fixtures`, which first prints its issuer; answers then. */
export async function startProviderProcess(fixture: string, setup: object): Promise<ProviderProcess> {
  const file = fileURLToPath(new URL(`../fixtures/${fixture}`, import.meta.url))
  const child = spawn(process.execPath, [file, JSON.stringify(setup)], { stdio: ['pipe', 'pipe', 'pipe'] })
  const complaints: string[] = []
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => complaints.push(line))
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout })
      .on('line', (line) => (line.startsWith('http://') ? resolve(line) : lines.push(line)))
      .on('close', () => reject(new Error(`the provider did not start:\n${complaints.join('\n')}`)))
  })
  return {
    url,
    lines: () => lines,
    send: (line) => void child.stdin.write(`${line}\n`),
    async close() {
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
      child.kill('SIGTERM')
      await ended
    },
  }
}
