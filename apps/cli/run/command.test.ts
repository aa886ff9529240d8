import assert from 'node:assert/strict'
import { test } from 'node:test'
import { program } from '../main.ts'

test('a program that is named without -- before it is refused with the line that works', async () => {
  const typed = program().parseAsync(['run', 'assistant', 'node', 'agent.js'], { from: 'user' })
  await assert.rejects(typed, {
    exitCode: 2,
    message: 'put -- before what is to run: plat run assistant -- node agent.js',
  })
})
