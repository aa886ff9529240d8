import path from 'node:path'
import { describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'

// One process runs every file of this list, so that start-up is paid once. Each file is a group, so that its hooks are its
// own. A file that cannot be loaded is a failed test and keeps no other file from running.
for (const file of (process.env.PLAT_TEST_FILES ?? '').split('\n').filter((line) => line !== '')) {
  describe(path.relative(process.cwd(), file), async () => {
    try {
      await import(pathToFileURL(file).href)
    } catch (error) {
      test(`${file} loads`, () => {
        throw error
      })
    }
  })
}
