import { mount, unmount } from "svelte";
import ExportUsers from "./ExportUsers.svelte";

const page = mount(ExportUsers, { target: document.body });
Object.assign(globalThis, { leave: () => unmount(page) });
