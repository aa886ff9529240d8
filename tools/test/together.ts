import { test } from 'node:test'
import { pathToFileURL } from 'node:url'

// One process runs every file of this list, so that start-up is paid once. A file that cannot be loaded is a failed test
// of its own and keeps no other file from running.
for (const file of (process.env.PLAT_TEST_FILES ?? '').split('\n').filter((line) => line !== '')) {
  try {
    await import(pathToFileURL(file).href)
  } catch (error) {
    test(`${file} loads`, () => {
      throw error
    })
  }
}
