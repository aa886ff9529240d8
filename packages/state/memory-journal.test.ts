import { createMemoryJournal } from './index.ts'
import { journalPromises, type Sample } from './journal.conformance.ts'

const fresh = () => createMemoryJournal<Sample>(() => 0)
let journal = fresh()

journalPromises({
  name: 'memory',
  open: async () => ({ journal, close: async () => {} }),
  async reset() {
    journal = fresh()
  },
})
