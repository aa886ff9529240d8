import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createFileMeter } from './cpu.ts'

/**
 * Runs test files one after another in this process, so that start-up is paid once. Each file is a group, so that its hooks are its own. A file that
 * cannot be loaded is a failed test and keeps no other file from running.
 */
export function runTogether(files: readonly string[]): void {
  const meter = createFileMeter()
  for (const file of files) {
    describe(path.relative(process.cwd(), file), async () => {
      before(() => meter?.start())
      try {
        await import(pathToFileURL(file).href)
      } catch (error) {
        test(`${file} loads`, () => {
          throw error
        })
      }
      after(() => meter?.end(file))
    })
  }
}
