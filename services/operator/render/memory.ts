import type { MemoryFile } from '@plat/resources/rendered'
import { problemLine, shareProblems } from '../validate/problem.ts'
import { type Declared, keyOf, sorted } from './declared.ts'

/** MemoryStores as the gateway's memoryFile: what their schema accepts can be kept. */
export function renderMemory(declared: Pick<Declared, 'memory' | 'oversized'>): {
  file: MemoryFile
  refused: string[]
} {
  const refused: string[] = []
  const stores: MemoryFile['stores'] = {}
  for (const store of sorted(declared.memory)) {
    const problems = shareProblems(store, declared)
    refused.push(...problems.map((problem) => problemLine(store, problem)))
    if (problems.length === 0) stores[keyOf(store)] = store.spec
  }
  return { file: { version: 1, stores }, refused }
}
