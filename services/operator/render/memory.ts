import type { MemoryFile } from '@plat/resources/rendered'
import { type Declared, keyOf, sorted } from './declared.ts'
import { faultLine, shareFaults } from './unbuilt.ts'

/** MemoryStores as the gateway's memoryFile: what their schema accepts can be kept. */
export function renderMemory(declared: Pick<Declared, 'memory' | 'oversized'>): {
  file: MemoryFile
  refused: string[]
} {
  const refused: string[] = []
  const stores: MemoryFile['stores'] = {}
  for (const store of sorted(declared.memory)) {
    const faults = shareFaults(store, declared)
    refused.push(...faults.map((fault) => faultLine(store, fault)))
    if (faults.length === 0) stores[keyOf(store)] = store.spec
  }
  return { file: { version: 1, stores }, refused }
}
