"""Base of every framework's hook: how it is made, by a script's call or from a configuration, and how it counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from smd_agent import guard, session
from smd_agent.config import env
from smd_agent.config.job_files import folder_wanted
from smd_agent.config.keys import DEFAULT_OUT_DIR
from smd_agent.config.load import read_settings
from smd_agent.config.placeholders import ALLOWED, UnknownPlaceholder, fill_in, names_rank
from smd_agent.config.settings import DEFAULT_SERIES_MEGABYTES, HookSettings
from smd_agent.core.clock import ModeClock
from smd_agent.core.collection import Collection
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.early_steps import EarlySteps
from smd_agent.core.failure_domains import STEPS
from smd_agent.core.hook import BaseHook
from smd_agent.core.locking import locked
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import DEFAULT_SAVE_INTERVAL, SaveConfig, SaveConfigMode
from smd_agent.core.selection import Selection
from smd_agent.core.value_writing import write_raw
from smd_agent.errors import SMDebugValueError
from smd_agent.formats.addresses import is_address
from smd_agent.framework.environment import Sources, environment
from smd_agent.framework.left_weights import save_left
from smd_agent.framework.live_rules import watch_for
from smd_agent.framework.restarts import Restarts
from smd_agent.framework.tracked_model import TrackedModel
from smd_agent.storage import open_runs
from smd_agent.storage.destination import Destination
from smd_agent.storage.folder_choice import absolute
from smd_agent.storage.metrics_file import MetricsFile
from smd_agent.storage.run_tensorboard import RunBoard
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.tensorboard_files import FOLDER

if TYPE_CHECKING:
    from typing_extensions import Self


def _alone_is_kept(out_dir: str) -> bool:
    """True if nothing beside the folder outlives the job."""
    return env.in_training_job() or os.path.abspath(out_dir) == DEFAULT_OUT_DIR


def _place_of(out_dir: str, upload_to: str | None) -> Destination:
    """The destination of the run; no store is asked where nothing is saved."""
    return Destination.of(out_dir, upload_to, env.upload_seconds()) if env.use_smdebug() else Destination(out_dir)


def _filled(out_dir: str) -> str:
    try:
        return fill_in(out_dir)
    except UnknownPlaceholder as unknown:
        allowed = f"allowed are {ALLOWED}, and {{{unknown}}} stands for {unknown}"
        raise SMDebugValueError(f"out_dir is {out_dir!r}, which names {unknown}: {allowed}") from None


def _board_of(folder: str | None, out_dir: str, selection: Selection) -> RunBoard | None:
    """The files for TensorBoard, if a folder for them is wanted."""
    if folder is None:
        return None
    selection.display.pictures = True
    # Below the address of a store they are written into the run's folder first, as all files are.
    named = None if is_address(folder) else absolute(folder)
    return RunBoard(None if named == absolute(out_dir) / FOLDER else named, selection.display.shown_in)


class FrameworkHook(BaseHook):
    """Saves the tensors of a training run by step and mode.

    Args:
        out_dir: folder of the run, or an address such as ``s3://bucket/run``, in which ``{host}``, ``{pid}``,
            ``{rank}`` and ``{date}`` may stand; it must not hold a finished run, unless ``made_from``. A run that goes
            on in it, or was cut off, is left alone: this one then goes into a new folder beside it, which one line
            names. Only a training that goes on from a checkpoint (see ``CHECKPOINT_CONFIG_FILE_PATH``) goes on in its
            run.
        export_tensorboard: write files for TensorBoard too, into ``tensorboard`` in the run's folder.
        tensorboard_dir: another folder for them, which alone asks for them. In a SageMaker training job neither counts:
            ``TENSORBOARD_CONFIG_FILE_PATH`` names a file that names the folder.
        dry_run: decide everything, but write no step.
        reduction_config: what to save instead of (or beside) the tensors; None saves the tensors.
        save_config: a SaveConfig, a SaveConfigMode, or a dict by mode; every ``default_save_interval`` steps if None.
        include_regex: further tensors to save.
        include_collections: names of the collections to save beside ``default_saved``.
        save_all: save every tensor.
        include_workers: ``"one"`` or ``"all"``.
        made_from: the configuration that says all of this, and where a copy of the run goes, of a hook that the program
            has not described by itself; then a finished run in ``out_dir`` is left alone, too.

    Attributes:
        include_regex, save_all: as they were given.
        built_in: the collections that the framework provides, and the regexes by which tensors join them.
        default_saved: the collections that are saved whatever is asked for.
        collection_class: what the framework's collections are.
        default_save_interval: in steps.
        facts: give what the framework knows of where it runs.
        broken_at_end: gives weights that are not finite when the run ends, by name; not where its last step is saved.
        untold_at_end: gives facts that no step has told of when the run ends, by name.
        saves_last: the weights are saved as the training has left them, though no step that is saved has them.
        made_from: the same.

    Raises:
        RuntimeError: there is no ``out_dir``.
        SMDebugValueError: it has another placeholder.
        SMDebugRuntimeError: ``out_dir`` holds a finished run.
    """

    built_in: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    default_saved: ClassVar[tuple[str, ...]] = ()
    collection_class: ClassVar[type[Collection]] = Collection
    default_save_interval: ClassVar[int] = DEFAULT_SAVE_INTERVAL
    facts: ClassVar[Sources] = ()
    broken_at_end: Callable[[], Iterable[tuple[str, Any]]] = tuple
    untold_at_end: Callable[[], Iterable[tuple[str, Any]]] = tuple
    saves_last = False

    def __init__(
        self,
        out_dir: str | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | None = None,
        dry_run: bool = False,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | SaveConfigMode | Mapping[Any, Any] | None = None,
        include_regex: str | Sequence[str] | None = None,
        include_collections: Iterable[Any] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        made_from: HookSettings | None = None,
    ) -> None:
        if out_dir is None:
            raise RuntimeError("out_dir is a required argument")
        self.made_from = made_from
        self.include_regex = include_regex
        self.save_all = save_all
        out_dir = os.fspath(out_dir)
        apart = names_rank(out_dir) if made_from is None else made_from.apart
        if made_from is None:
            out_dir = _filled(out_dir)
        place = _place_of(out_dir, None if made_from is None else made_from.upload_to)
        self._restarts = Restarts(place)
        if made_from is None and self._restarts.continued is None and env.use_smdebug():
            place.refuse_finished_run()
        selection = Selection(
            CollectionManager(create_default=True, built_in=self.built_in, collection_class=self.collection_class),
            self.default_saved,
            reduction_config=reduction_config,
            save_config=SaveConfig(save_interval=self.default_save_interval) if save_config is None else save_config,
            include_regex=include_regex,
            include_collections=include_collections,
            save_all=save_all,
        )
        self._board = _board_of(
            folder_wanted(export_tensorboard or None, tensorboard_dir, out_dir), place.folder, selection
        )
        folder = env.metrics_directory()
        writer = RunWriter(
            place.folder,
            dry_run,
            below=_alone_is_kept(place.folder),
            board=self._board,
            continued=self._restarts.continued,
            metrics=None if folder is None else MetricsFile(folder, selection.is_metric),
            uploads=place.uploads,
            series_bytes=(DEFAULT_SERIES_MEGABYTES if made_from is None else made_from.series_megabytes) << 20,
            tap=made_from is None or made_from.tap,
            watch=None if made_from is None else watch_for(made_from.live_rules),
        )
        super().__init__(writer, selection, include_workers, self._restarts.position)
        self._restarts.begin(self, writer)
        if made_from is not None:
            self.recorder.series.budget = made_from.budget
        self.keep_apart(apart)
        self.set_up()
        open_runs.add(self)
        replaced = session.make_current(self)
        if made_from is None:
            session.tell_of_own_hook(self)
            for other in replaced:
                self.take_over(other)

    @property
    def tensorboard_dir(self) -> str | None:
        """The folder of the files for TensorBoard; None if there are none."""
        if self._board is None:
            return None
        root = Path(self._output.sink.folder or self.out_dir)
        return str(self._board.folder_for(root, as_asked=self._output.sink.relocated_because is None))

    def has_default_hook_configuration(self) -> bool:
        """True if the collections that are saved are those that hooks of this framework save by themselves."""
        return {*self.include_collections} == {*self.default_saved}

    def set_up(self) -> None:
        """Give a new hook what only its framework's hooks have; called once, by the constructor."""

    def take_over(self, other: BaseHook) -> None:
        """Go on with what the agent has found for a hook that this one, the program's own, takes the place of."""

    def environment(self) -> Mapping[str, Mapping[str, str]]:
        """Facts as text, by group and name, of where this process runs; no user, host, folder or argument is named."""
        return environment(*self.facts)

    def count_forwards(self) -> None:
        """Count each call of a model as a step, as smdebug does; to be called before a model is known.

        Where a framework's steps are not counted by calls of models, nothing changes.
        """

    def name_culprits(self) -> None:
        """Name what makes a loss or gradients not finite, where a framework can; to be called before a model is known.

        For that, parts of the program are run again.
        """

    def keep_bundles(self, megabytes: int) -> None:
        """Keep what a step that goes wrong was given, up to this size, where a framework can; 0: it is not kept."""

    def follow_calls(self) -> None:
        """Take the mode from what the program does until ``set_mode`` is called."""
        self.recorder.follow_calls()

    def next_step(self, clock: ModeClock, steps: int = 1) -> None:
        """Close the open step and begin the next one, counted by this clock; it is opened if it is due.

        Args:
            clock: of the mode.
            steps: how many steps have been made since, the new one among them.
        """
        if self.position.open:
            self.finish_step()
        if self.position.begin(clock, steps):
            self.start_step()

    def give_up_step(self) -> None:
        """Capture no more of a step whose opening has failed."""
        self.recorder.give_up_step()

    @STEPS.fence("counting a step", again=True)
    def count_missed(self, tracked: TrackedModel[Any] | None, train: bool, is_counted: bool) -> None:
        """A model's counter has failed: count the step that the call begins, if it does and ``is_counted`` is False."""
        position = self.position
        if tracked is None or is_counted or position.inside or position.awaits_update:
            return
        clock = position.train if train else position.evaluation
        begins = position.updated or tracked.last == position.step or clock is not position.clock
        if not (begins or (train and position.ends_with_update)):
            return
        if position.open:
            self.recorder.end_step()
        position.awaits_update = position.ends_with_update if train else position.awaits_update
        position.begin(clock)
        tracked.last = position.step

    @STEPS.fence("opening a step", then=give_up_step)
    def start_step(self) -> None:
        """Decide about the step that has just begun."""
        self.recorder.open_step()

    @STEPS.fence("closing a step")
    def finish_step(self) -> None:
        """Close the open step."""
        self.recorder.end_step()

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        self._restarts.settle()
        if self.saves_last and self.writing:
            self._save_left()
        if self.writing and self.recorder.step_saved < self.step:
            self._save_at_end(self.broken_at_end)
        if self.writing and (self.recorder.step_saved < self.step or self.recorder.unfinished):
            self._save_at_end(self.untold_at_end)
        super().finish(end_marker)

    def left_weights(self) -> Mapping[str, Any]:
        """The weights by name, as the last update has left them; none where the program has changed them since."""
        return {}

    @STEPS.fence("saving the weights as they were left")
    @locked
    def _save_left(self) -> None:
        save_left(self.recorder, self.left_weights)

    @STEPS.fence("looking at the end of a run")
    @locked
    def _save_at_end(self, found: Callable[[], Iterable[tuple[str, Any]]]) -> None:
        """Save what is found at the end in the last step, though that may be none of those to be saved."""
        for name, value in found():
            captured, sink = self.to_array(value), self.recorder.sink_of_step()
            if captured is not None and sink is not None:
                write_raw(sink, name, captured)

    def disable(self) -> None:
        """Save nothing more. What has been handed to the disk stays; the current step is dropped."""
        super().disable()
        self._restarts.stop()

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Self:
        """Make a hook from a JSON file; where the process's hook has been made by the same configuration, that one.

        Args:
            json_file_path: the file; if None, the one that the environment names.

        Raises:
            FileNotFoundError: there is no such file, and ``USE_SMDEBUG`` is not off.
            ConfigError: the file is not a hook configuration.
        """
        try:
            settings = read_settings(json_file_path, cls.default_save_interval)
        except FileNotFoundError:
            if env.use_smdebug():
                raise
            return session.current_of(cls) or cls(DEFAULT_OUT_DIR)
        existing = session.current_of(cls)
        if existing is not None and existing.made_from == cls.followed(settings) and not existing.ended_worker:
            return existing
        return cls.from_settings(settings)

    @classmethod
    def followed(cls, settings: HookSettings) -> HookSettings:
        """The settings as far as the framework's hooks follow them."""
        return settings

    @classmethod
    def from_settings(cls, settings: HookSettings) -> Self:
        """Make a hook from settings that have been read."""
        settings = cls.followed(settings)
        for warning in settings.warnings:
            guard.say_once(warning, warning)
        hook = cls(
            out_dir=settings.out_dir,
            export_tensorboard=settings.export_tensorboard,
            tensorboard_dir=settings.tensorboard_dir,
            dry_run=settings.dry_run,
            reduction_config=settings.reduction_config,
            save_config=settings.save_config,
            include_regex=list(settings.include_regex),
            include_collections=settings.include_collections,
            save_all=settings.save_all,
            include_workers=settings.include_workers,
            made_from=settings,
        )
        hook.selection.unfilled.explained.update(settings.unfilled)
        hook.saves_last = settings.save_last
        if settings.save_early:
            hook.save_early(EarlySteps(budget=settings.budget))
        if settings.step == "forward":
            hook.count_forwards()
        if settings.blame:
            hook.name_culprits()
        hook.keep_bundles(settings.bundle_megabytes)
        for wanted in settings.collections:
            collection = hook.collection_manager.get(wanted.name)
            collection.include(list(wanted.include_regex))
            if wanted.save_config is not None:
                collection.save_config = wanted.save_config
            if wanted.reduction_config is not None:
                collection.reduction_config = wanted.reduction_config
            if wanted.save_histogram is not None:
                collection.save_histogram = wanted.save_histogram
        own = [(rule.name, rule.parameters) for rule in settings.rules]
        hook.collection_manager.set_rules(own, settings.ignored_rules)
        return hook
