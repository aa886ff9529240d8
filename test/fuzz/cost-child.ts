import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { isCostTarget, withRows } from './cost.ts'

/** Runs the target of the group cost that a file exports, and sends its result to the parent process (`runAlone`). */
async function main(file: string, seconds: number, row: string): Promise<void> {
  const { target } = await import(pathToFileURL(path.resolve(file)).href)
  if (!isCostTarget(target)) throw new TypeError(`${file}: exports no target with rows`)
  process.send?.((await withRows(target, row)?.run(seconds, 0)) ?? { cases: 0 })
}

const [file = '', seconds = '', row = ''] = process.argv.slice(2)
await main(file, Number(seconds), row)
